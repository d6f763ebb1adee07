package drivers_test

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

var sample = segment.Tag{Name: "order", MaxID: 1, Step: 2000}

// roundTrip creates a store and uses it.
func roundTrip(t *testing.T, storeURL string) {
	t.Helper()
	if ok, err := storeExists(t.Context(), storeURL); ok || err != nil {
		t.Fatalf("exists before init: %v, %v", ok, err)
	}
	if err := initStore(t.Context(), storeURL, sample); err != nil {
		t.Fatal(err)
	}
	if ok, err := storeExists(t.Context(), storeURL); !ok || err != nil {
		t.Fatalf("exists after init: %v, %v", ok, err)
	}
	if err := initStore(t.Context(), storeURL, sample); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second init: %v, want fs.ErrExist", err)
	}
	b := backend(t, storeURL)
	s, err := b.Store()
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Advance(t.Context(), "order", 0)
	if want := (leaf.Range{Start: 1, End: 2001}); err != nil || g.Range != want || g.Step != 2000 {
		t.Errorf("first range %+v, %v, want %v", g, err, want)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Advance(t.Context(), "order", 0); !errors.Is(err, leaf.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestSQLite(t *testing.T) {
	for _, name := range []string{"leaf.db", "a b%20c?d#e&f=ü.db"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			roundTrip(t, "sqlite:"+filepath.Join(dir, name))
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("relative", func(t *testing.T) {
		t.Chdir(t.TempDir())
		roundTrip(t, "sqlite:leaf.db")
		roundTrip(t, "sqlite:./other.db")
	})
}

func TestSQLiteNeverCreates(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "typo.db"), filepath.Join(dir, "no", "folder.db")} {
		s := open(t, "sqlite:"+path)
		if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
			t.Errorf("%s: %v, want ErrNotCreated", path, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("something was created: %v", entries)
	}
}

func TestOpenMalformed(t *testing.T) {
	tests := map[string]string{
		"":                                       "no scheme",
		"leaf.db":                                "no scheme",
		"sqlit:leaf.db":                          "did you mean sqlite?",
		"mysq://h/db":                            "did you mean mysql?",
		"myslq://h/db":                           "did you mean mysql?",
		"memory:":                                "unknown scheme: write it as in sqlite:PATH",
		"jdbc:postgresql://h/db":                 "begin with jdbc:mysql",
		"sqlite:":                                "names no file",
		"sqlite::memory:":                        "in memory",
		"sqlite://relative.db":                   "without slashes",
		"mysql:h/db":                             "two slashes",
		"mysql://h":                              "database is missing",
		"mysql://h/":                             "database is missing",
		"mysql://u:secret@h:port/db":             "port is malformed",
		"mysql://u:secret@h:99999/db":            "port is malformed",
		"mysql://u:sec%ret@h/db":                 "percent-encoded",
		"mysql://u:secret@h1,h2:x/db":            "port is malformed",
		"mysql://u:secret@h1,/db":                "port is malformed",
		"mysql://u:secret@h1,H1:3306/db":         "names h1:3306 twice",
		"mysql://u:secret@h/db?tls=perhaps":      "tls is not one of",
		"mysql://u:secret@h/db?timeout=5":        "not a duration",
		"mysql://u:secret@h/db?sql_mode=x":       "unknown parameter",
		"mysql://u:secret@unix(/tmp/s":           "socket is written",
		"mysql://root:secret":                    "malformed",
		"mysql://u:secret@/db":                   "malformed",
		"mysql://u:secret@h/db?%zz=1":            "parameters are malformed",
		"mysql://u:p@h/db?ca=/etc/leaf@x/a.pem":  "write %40",
		"mysql://u:p?q@h/db?ca=/leaf@x/a.pem":    "write %40",
		"mysql://h/db?ca=/etc/leaf@x/a.pem":      "write %40",
		"mysql://h:1/db?ca=/etc/leaf@x/a.pem":    "write %40",
		"mysql://[::1]:1/db?ca=/leaf@x/a.pem":    "write %40",
		"postgres:///db?user=u&password=secret@": "write %40",
		"mysql://u:secret@x?a=secret@h/db":       "%3F for a question mark in a password",
		"mysql//u:secret@h/db":                   "unknown scheme",
		"u:secret@h/db":                          "unknown scheme",
		"mysqlx:u:secret@h":                      "unknown scheme",
		"jdbc:mysql://h1,h1/db?password=secret":  "malformed",
	}
	for storeURL, want := range tests {
		_, err := drivers.Open(storeURL, nil)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want ErrInvalid and %q", storeURL, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("Open(%q): %v: holds the password", storeURL, err)
		}
	}
}

func TestRedact(t *testing.T) {
	tests := map[string]string{
		"mysql://root:secret@h:3306/db":                      "mysql://root:xxxxx@h:3306/db",
		"mysql://root:se@cr:et/x?y#z@h/db?tls=true":          "mysql://root:xxxxx@h/db?tls=true",
		"mysql://root@h/db":                                  "mysql://root@h/db",
		"mysql://h:3306/db":                                  "mysql://h:3306/db",
		"mysql://h/db":                                       "mysql://h/db",
		"mysql://root:secret":                                "mysql://root:xxxxx",
		"redis://:secret@h":                                  "redis://:xxxxx@h",
		"jdbc:mysql://h/db?user=u&password=secret":           "jdbc:mysql://h/db?user=u&password=xxxxx",
		"etcd://h1:2379,h2:2379/p":                           "etcd://h1:2379,h2:2379/p",
		"t+mysql://u:secret@h/db,u:secret@h2/db":             "t+mysql://u:xxxxx@h2/db",
		"ticket+mysql://root@h:1/db,u:secret@h2/db?stride=9": "ticket+mysql://xxxxx@h:1/db,xxxxx@h2/db",
		"ticket+mysql://h/db,u:se,cret@h2/db":                "ticket+mysql://h/db,xxxxx,xxxxx@h2/db",
		"ticket+mysql://u:se?cret@h2/db":                     "ticket+mysql://xxxxx",
		"ticket+mysql://u:secret":                            "ticket+mysql://xxxxx",
		"sqlite:/a/b@c:d":                                    "sqlite:/a/b@c:d",
		"cluster:/a/b?ca=x&peers=h1:2380,h2:2380":            "cluster:/a/b",
		"u:secret@h":                                         "xxxxx@h",
		"leaf:x//secret@h":                                   "leaf:x//xxxxx@h",
		"\x00://u:secret@%zz":                                "\x00://u:xxxxx@%zz",
		"":                                                   "",
	}
	for storeURL, want := range tests {
		if got := drivers.Redact(storeURL); got != want {
			t.Errorf("Redact(%q) = %q, want %q", storeURL, got, want)
		}
	}
}

func TestKey(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Symlink(dir, "link"); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"sqlite:leaf.db":                        "sqlite:" + dir + "/leaf.db",
		"sqlite:" + dir + "/x/../leaf.db":       "sqlite:" + dir + "/leaf.db",
		"sqlite:link/leaf.db":                   "sqlite:" + dir + "/leaf.db",
		"sqlite:///var/leaf.db":                 "sqlite:/var/leaf.db",
		"mysql://u:p@H/db?tls=true":             "mysql://h:3306/db",
		"MySQL://h:3307/db":                     "mysql://h:3307/db",
		"mysql://u:p@h1,H2:3307/db":             "mysql://h1:3306,h2:3307/db",
		"mysql://v@h2:3307,h1:3306/db?tls=true": "mysql://h1:3306,h2:3307/db",
		"mysql://[::1]/db":                      "mysql://[::1]:3306/db",
		"mysql://u@unix(/run/mysqld.sock)/d":    "mysql:///run/mysqld.sock/d",
	}
	for storeURL, want := range tests {
		if got, err := keyOf(storeURL); err != nil || got != want {
			t.Errorf("Key(%q) = %q, %v, want %q", storeURL, got, err, want)
		}
	}
}

// A key is the same before and after the creation of the state, through all links.
func TestKeyOfWhatIsYetToBe(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for link, target := range map[string]string{
		"link": dir, "dangling": "later", "dangling.db": "link/later/real.db", "loop": "pool", "pool": "loop",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"sqlite:link/later/deep/leaf.db": dir + "/later/deep/leaf.db",
		"sqlite:dangling/leaf.db":        dir + "/later/leaf.db",
		"sqlite:dangling.db":             dir + "/later/real.db",
	}
	check := func(when string) {
		t.Helper()
		for storeURL, path := range want {
			if got, err := keyOf(storeURL); err != nil || got != "sqlite:"+path {
				t.Errorf("%s: Key(%q) = %q, %v, want the path %q", when, storeURL, got, err, path)
			}
		}
	}
	check("before")
	if _, err := keyOf("sqlite:loop/leaf.db"); err != nil {
		t.Errorf("a loop of links: %v", err)
	}
	if err := os.MkdirAll("later/deep", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range want {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("after")
}

// Exists distinguishes a missing store from an unreadable one.
func TestNotCreated(t *testing.T) {
	dir := t.TempDir()
	empty, folder := filepath.Join(dir, "empty.db"), filepath.Join(dir, "folder.db")
	if err := errors.Join(os.WriteFile(empty, nil, 0o600), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{filepath.Join(dir, "missing.db"): true, empty: true, folder: false} {
		_, err := open(t, "sqlite:"+path).Advance(t.Context(), "order", 1)
		if err == nil || errors.Is(err, segment.ErrNotCreated) != want {
			t.Errorf("%s: %v, want ErrNotCreated: %v", path, err, want)
		}
	}
}

// A JDBC URL names the same state as its mysql: URL.
func TestJDBCIsAStoreURL(t *testing.T) {
	open(t, "jdbc:mysql://h:3307/leaf?user=u&password=p")
	jdbc, err := keyOf("jdbc:mysql://h:3307/leaf?user=u&password=p")
	if want, werr := keyOf("mysql://u:p@h:3307/leaf"); jdbc != want || cmp.Or(err, werr) != nil {
		t.Errorf("key %q, %v; want %q, %v", jdbc, err, want, werr)
	}
}

func TestFromJDBC(t *testing.T) {
	tests := []struct{ jdbc, user, password, want string }{
		{"jdbc:mysql://h:3307/leaf?useUnicode=true&characterEncoding=utf8", "root", "p", "mysql://root:p@h:3307/leaf?tls=preferred"},
		{"jdbc:mysql://h/leaf", "", "", "mysql://h/leaf?tls=preferred"},
		{"jdbc:mysql://h1:3307,h2/leaf", "u", "p", "mysql://u:p@h1:3307,h2/leaf?tls=preferred"},
		{"jdbc:mysql:loadbalance://h1:3307,h2/leaf", "u", "p", "mysql://u:p@h1:3307,h2/leaf?tls=preferred"},
		{"jdbc:mysql:replication://h1,h2/leaf?user=u", "", "", "mysql://u@h1,h2/leaf?tls=preferred"},
		{"jdbc:mariadb://h1:3307,h2/leaf?useSSL=false", "u", "p", "mysql://u:p@h1:3307,h2/leaf?tls=false"},
		{"JDBC:MariaDB:Sequential://h1,h2/leaf", "", "", "mysql://h1,h2/leaf?tls=preferred"},
		{"jdbc:mysql:///leaf", "root", "", "mysql://root@localhost/leaf?tls=preferred"},
		{"JDBC:MySQL://h/leaf?user=u&password=p", "", "", "mysql://u:p@h/leaf?tls=preferred"},
		{"jdbc:mysql://h/leaf?user=u&password=p", "a", "b", "mysql://a:b@h/leaf?tls=preferred"},
		{"jdbc:mysql://h/leaf?useSSL=false", "", "", "mysql://h/leaf?tls=false"},
		{"jdbc:mysql://h/leaf?useSSL=true", "", "", "mysql://h/leaf?tls=true"},
		{"jdbc:mysql://h/leaf?useSSL=true&verifyServerCertificate=false", "", "", "mysql://h/leaf?tls=preferred"},
		{"jdbc:mysql://h/leaf?useSSL=true&verifyServerCertificate=false&requireSSL=true", "", "", "mysql://h/leaf?tls=skip-verify"},
		{"jdbc:mysql://h/leaf?sslMode=DISABLED&useSSL=true", "", "", "mysql://h/leaf?tls=false"},
		{"jdbc:mysql://h/leaf?sslMode=REQUIRED", "", "", "mysql://h/leaf?tls=skip-verify"},
		{"jdbc:mysql://h/leaf?sslMode=verify_identity", "", "", "mysql://h/leaf?tls=true"},
		{"jdbc:mysql://h/leaf?connectTimeout=1500&socketTimeout=60000", "", "", "mysql://h/leaf?readTimeout=60000ms&timeout=1500ms&tls=preferred&writeTimeout=60000ms"},
		{"jdbc:mysql://h/leaf?connectTimeout=0&socketTimeout=x", "", "", "mysql://h/leaf?tls=preferred"},
		{"jdbc:mysql://h/leaf", "a:b@c", "p@s/s:w?o#r%d+ ", "mysql://a%3Ab%40c:p%40s%2Fs%3Aw%3Fo%23r%25d%2B%20@h/leaf?tls=preferred"},
	}
	for _, tt := range tests {
		got, err := drivers.FromJDBC(tt.jdbc, tt.user, tt.password)
		if err != nil || got != tt.want {
			t.Errorf("FromJDBC(%q) = %q, %v, want %q", tt.jdbc, got, err, tt.want)
		}
		if strings.Contains(drivers.Redact(got), "p%40s") {
			t.Errorf("Redact(%q) = %q", got, drivers.Redact(got))
		}
	}
	for jdbc, want := range map[string]string{
		"jdbc:postgresql://h/leaf":      "begin with jdbc:mysql://",
		"mysql://h/leaf":                "begin with jdbc:mysql://",
		"jdbc:mysql://h1:3306,:3307/db": "malformed",
		"jdbc:mysql://h":                "malformed",
		"jdbc:mysql://h:x/leaf":         "malformed",
		"jdbc:mysql://h/leaf?%zz":       "parameters are malformed",
		"jdbc:mysql:srv://h/leaf":       "begin with jdbc:mysql://",
		"jdbc:mysql:replication://h1/":  "malformed",
	} {
		if got, err := drivers.FromJDBC(jdbc, "u", "secret"); !errors.Is(err, leaf.ErrInvalid) ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("FromJDBC(%q) = %q, %v, want %q", jdbc, got, err, want)
		}
	}
}

func TestMySQL(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--sql-mode=", "--character-set-server=latin1", "--skip-character-set-client-handshake"}})

	t.Run("round trip", func(t *testing.T) { roundTrip(t, server.URL(server.NewDatabase(t))) })
	t.Run("socket", func(t *testing.T) {
		roundTrip(t, "mysql://root@unix("+server.Socket()+")/"+server.NewDatabase(t))
	})
	t.Run("odd password", func(t *testing.T) {
		db := server.NewDatabase(t)
		server.Exec(t, "", `CREATE USER 'o@d:d'@'127.0.0.1' IDENTIFIED BY 'p@s/s:w?o#r%d+ ü'`, `GRANT ALL ON `+db+`.* TO 'o@d:d'@'127.0.0.1'`)
		host := strings.TrimPrefix(server.URL(db), "mysql://root@")
		fromJDBC, err := drivers.FromJDBC("jdbc:mysql://"+host+"?useSSL=false", "o@d:d", "p@s/s:w?o#r%d+ ü")
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, fromJDBC)
		s := open(t, "mysql://"+url.UserPassword("o@d:d", "p@s/s:w?o#r%d+ ü").String()+"@"+host)
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Error(err)
		}
	})
	t.Run("hung server", func(t *testing.T) {
		db := server.NewDatabase(t)
		if err := initStore(t.Context(), server.URL(db), sample); err != nil {
			t.Fatal(err)
		}
		s := open(t, server.URL(db)+"?readTimeout=300ms&timeout=300ms")
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Fatal(err)
		}
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"an open connection", "a new connection"} {
			begin := time.Now()
			if _, err := s.Advance(t.Context(), "order", 1); err == nil {
				t.Errorf("%s: a paused server answered", what)
			}
			if d := time.Since(begin); d > 20*time.Second {
				t.Errorf("%s: the call lasted %v", what, d)
			}
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Errorf("after the pause: %v", err)
		}
	})
}

// The file does not exist yet.
func TestSQLiteInitTogether(t *testing.T) {
	for scheme, create := range map[string]func(context.Context, string) error{
		"store":    func(ctx context.Context, url string) error { return initStore(ctx, url, sample) },
		"registry": initRegistry,
	} {
		t.Run(scheme, func(t *testing.T) {
			drivertest.TestInit(t, func(t testing.TB) func(context.Context) error {
				url := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
				return func(ctx context.Context) error { return create(ctx, url) }
			})
		})
	}
}
