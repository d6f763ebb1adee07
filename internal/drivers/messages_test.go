package drivers_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// secret is the password in all URLs here.
const secret = "hunter2"

// A complaint is a URL that does not work, and the expected message: the problem, its place, and a
// remedy.
type complaint struct {
	name, url string
	calls     []string // that fail, of usages
	want      []string // in each message
	within    time.Duration
}

// Calls that fail for one reason.
var (
	useStore   = []string{"advance", "list tags"}
	allStore   = append([]string{"store exists", "init store"}, useStore...)
	useWorkers = []string{"list workers", "clock"}
	allWorkers = append([]string{"workers exist", "init workers"}, useWorkers...)
	use        = slices.Concat(useStore, useWorkers)
	all        = slices.Concat(allStore, allWorkers)
)

// usages are the ways to use a URL.
func usages() map[string]func(context.Context, *drivers.Backend) error {
	store := func(do func(context.Context, segment.Store) error) func(context.Context, *drivers.Backend) error {
		return func(ctx context.Context, b *drivers.Backend) error {
			s, err := b.Store()
			if err != nil {
				return err
			}
			return do(ctx, s)
		}
	}
	registry := func(do func(context.Context, worker.Registry) error) func(context.Context, *drivers.Backend) error {
		return func(ctx context.Context, b *drivers.Backend) error {
			r, err := b.Registry(&drivers.RegistryOptions{Observe: true})
			if err != nil {
				return err
			}
			return do(ctx, r)
		}
	}
	return map[string]func(context.Context, *drivers.Backend) error{
		"advance": store(func(ctx context.Context, s segment.Store) error {
			_, err := s.Advance(ctx, "order", 1)
			return err
		}),
		"list tags": store(func(ctx context.Context, s segment.Store) error {
			for _, err := range s.Tags(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}),
		"store exists": func(ctx context.Context, b *drivers.Backend) error {
			_, err := b.Tags.Exists(ctx)
			return err
		},
		"init store": func(ctx context.Context, b *drivers.Backend) error { return b.Tags.Init(ctx, sample) },
		"list workers": registry(func(ctx context.Context, r worker.Registry) error {
			_, err := r.List(ctx)
			return err
		}),
		"clock": registry(func(ctx context.Context, r worker.Registry) error {
			_, err := r.Clock(ctx)
			return err
		}),
		"workers exist": func(ctx context.Context, b *drivers.Backend) error {
			_, err := b.Workers.Exists(ctx)
			return err
		},
		"init workers": func(ctx context.Context, b *drivers.Backend) error { return b.Workers.Init(ctx) },
	}
}

// complain makes the calls of each complaint. All must fail with its message.
func complain(t *testing.T, group string, complaints []complaint) {
	t.Helper()
	usages := usages()
	t.Run(group, func(t *testing.T) { // which ends when all in it have
		for _, c := range complaints {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				for _, name := range c.calls {
					c.check(t, name, usages[name])
				}
			})
		}
	})
}

func (c complaint) check(t *testing.T, name string, call func(context.Context, *drivers.Backend) error) {
	t.Helper()
	if c.within == 0 {
		c.within = 8 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), c.within)
	defer cancel()
	var log testserver.Output
	b, err := drivers.Open(c.url, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 3 { // on a busy machine a server may take longer to refuse than a driver waits
		err = call(ctx, b)
		if !errors.Is(err, context.DeadlineExceeded) || len(faults(advised(err), c.want)) == 0 {
			break
		}
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("%s: the log holds the password:\n%s", name, &log)
	}
	if err == nil {
		t.Errorf("%s: no error, want one that says %q", name, c.want)
		return
	}
	t.Logf("%s: %v", name, err)
	for _, fault := range faults(advised(err), c.want) {
		t.Errorf("%s: %s", name, fault)
	}
}

// advised is an error as people see it, with its hint.
func advised(err error) string {
	if h := hint.Of(err); h != "" {
		return err.Error() + ": hint: " + h
	}
	return err.Error()
}

// faults returns the faults of a message for people.
func faults(text string, want []string) (faults []string) {
	for _, w := range want {
		if !strings.Contains(text, w) {
			faults = append(faults, fmt.Sprintf("the error does not say %q", w))
		}
	}
	for part, what := range map[string]string{
		secret: "the password", "\n": "more than one line", "rpc error": "what gRPC says", "`user=": "what pgx says",
		"file already exists": "a file that is none", "%!": "a wrong verb",
	} {
		if strings.Contains(text, part) {
			faults = append(faults, "the error holds "+what)
		}
	}
	if len(text) > 600 {
		faults = append(faults, fmt.Sprintf("the error is %d bytes long", len(text)))
	}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(text, ": ") {
		if len(part) > len("connection refused") && seen[part] {
			faults = append(faults, fmt.Sprintf("the error says %q twice", part))
		}
		seen[part] = true
	}
	return faults
}

func TestFaults(t *testing.T) {
	for _, text := range []string{"", "want: " + secret, "want:\nsecond", "want: file already exists", "want: this is what it says twice: b: this is what it says twice", "want: " + strings.Repeat("x", 600)} {
		if len(faults(text, []string{"want"})) != 1 {
			t.Errorf("%q: %q", text, faults(text, []string{"want"}))
		}
	}
	if f := faults("want: this", []string{"want"}); len(f) > 0 {
		t.Error(f)
	}
}

// freeAddr returns an address where no server listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// impostor is a server with a certificate that only clients with its file trust. preface runs on a
// connection before the encryption; afterwards the server hangs up.
func impostor(t *testing.T, preface func(net.Conn)) (addr, certificate string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate = filepath.Join(t.TempDir(), "cert.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				preface(conn)
				_ = tls.Server(conn, config).Handshake() // which the client gives up
			}()
		}
	}()
	return l.Addr().String(), certificate
}

func plainly(net.Conn) {}

func TestMessagesOfURLs(t *testing.T) {
	const host = "host or its port is m" // malformed, or missing
	store := map[string][]string{
		"":                                    {"no scheme", "sqlite:PATH"},
		"u:hunter2@h/db":                      {"unknown scheme", "mysql://user:password@host:3306/db"},
		"postgre://u:hunter2@h/db":            {"did you mean postgres?"},
		"pg://u:hunter2@h/db":                 {"did you mean postgres?"},
		"mariadb://u:hunter2@h/db":            {"did you mean mysql?"},
		"rdis://:hunter2@h":                   {"did you mean redis?"},
		"etc://h":                             {"did you mean etcd?"},
		"ticket-mysql://u:hunter2@h/db":       {"did you mean ticket+mysql?"},
		"http://u:hunter2@h":                  {"unknown scheme", "etcd"},
		"zookeeper://h?layout=leaf&name=n":    {"for worker IDs only", "--workers"},
		"nats://u:hunter2@h:port":             {host, "nats://h1:4222"},
		"nats://h?replicas=2x":                {"replicas is not a number"},
		"static:7":                            {"--workers"},
		"sqlite:":                             {"names no file", "sqlite:PATH"},
		"sqlite:a/":                           {"names no file", "sqlite:PATH"},
		"sqlite://a":                          {"without slashes"},
		"postgres:u:hunter2@h/db":             {"two slashes", "postgres://user:password@host:5432/db"},
		"postgres://u:hunter2@/db":            {host, "postgres://user:"},
		"postgres://u:hunter2@h:port/db":      {host},
		"postgres://u:hunter2@h1,h2:99999/db": {host},
		"postgres://u:hunter2@h":              {"name of the database is missing"},
		"postgres://u:hunter2@h/db?sslmod=a":  {"unknown parameter", "did you mean sslmode?"},
		"postgres://u:hunter2@h/db?sslmode=a": {"sslmode is invalid"},
		"postgres://u:hunter2@h/db?target_session_attrs=a":   {"target_session_attrs", "postgres://user:"},
		"postgres://u:hunter2@h/db?connect_timeout=5s":       {"connect_timeout"},
		"postgres://u:hunter2@h/db?sslrootcert=/nowhere/a":   {"/nowhere/a", "no such file"},
		"postgres://u:hunter2@h/db?sslrootcert=text.pem":     {"CA"},
		"postgres://u:hunter2%@h/db":                         {"write %25"},
		"postgres://u:hunter2@h/db?sslmode=a&sslmode=b":      {"more than once"},
		"postgres://u:hunter2@h/db?claim_delay=0":            {"claim_delay is for worker IDs", "--workers"},
		"mysql://u:hunter2@/db":                              {host, "mysql://user:"},
		"mysql://u:hunter2@h:port/db":                        {host},
		"mysql://u:hunter2@h":                                {"name of the database is missing"},
		"mysql://u:hunter2@h/db?tsl=true":                    {"did you mean tls?"},
		"mysql://u:hunter2%@h/db":                            {"write %25"},
		"redis:h":                                            {"redis://host:6379"},
		"redis://u:hunter2@":                                 {host, "redis://host:6379"},
		"redis://u:hunter2@h:port":                           {host},
		"redis://u:hunter2@h1,h2":                            {"name one server", "redis+sentinel://"},
		"redis://u:hunter2@h/x":                              {"database is not a number"},
		"redis://u:hunter2@h?wiat=1":                         {"did you mean wait?"},
		"redis://u:hunter2@h?ca=/a":                          {"write rediss"},
		"redis://u@h":                                        {"user without a password"},
		"redis+sentinel://:hunter2@h":                        {"name of the primary is missing"},
		"redis+cluster://:hunter2@h/3":                       {"database 0 only"},
		"rediss://:hunter2@h?ca=/nowhere/a":                  {"ca: open /nowhere/a"},
		"rediss://:hunter2@h?ca=text.pem":                    {"ca: there is no PEM certificate"},
		"rediss://:hunter2@h?cert=/nowhere/a":                {"cert and key belong together"},
		"etcd:h":                                             {"two slashes", "etcd://h1:2379"},
		"etcd://u:hunter2@":                                  {host, "etcd://h1:2379"},
		"etcd://u:hunter2@h:port":                            {host},
		"etcd://u@h":                                         {"a name and a password"},
		"etcd://u:hunter2@h?tsl=true":                        {"did you mean tls?"},
		"etcd://u:hunter2@h?tls=yes":                         {"tls is not one of"},
		"etcd://u:hunter2@h?ca=/a":                           {"add tls=true"},
		"etcd://u:hunter2@h?tls=true&ca=/nowhere/a":          {"ca: open /nowhere/a"},
		"ticket+mysql://u:hunter2@h":                         {"server 1: the name of the database is missing"},
		"ticket+mysql://u:hunter2@h/db,u:hunter2@h2":         {"server 2: the name of the database is missing"},
		"ticket+mysql://u:hunter2@h/db,u:hunter2@h2:port/db": {"server 2", host},
		"ticket+mysql://u:hunter2@h/db,v:hunter2@h:3306/db":  {"h:3306/db is named twice"},
		"ticket+mysql://u:hunter2@h/db?strid=5":              {"did you mean stride?"},
	}
	workers := map[string][]string{
		"zookeper://h":                           {"did you mean zookeeper?"},
		"zk://h":                                 {"did you mean zookeeper?"},
		"ticket+mysql://u:hunter2@h/db":          {"not for worker IDs", "--workers"},
		"zookeeper:h":                            {"two slashes", "zookeeper://h1:2181"},
		"zookeeper://":                           {host},
		"zookeeper://h:port":                     {host},
		"zookeeper://u:hunter2@h":                {"does not log in"},
		"zookeeper://h?layout=java":              {"neither pool, nor leaf"},
		"zookeeper://h?layout=leaf":              {"name=…, the leaf.name"},
		"zookeeper://h?naem=x":                   {"did you mean name?"},
		"static:":                                {"static:7"},
		"static:-1":                              {"static:7"},
		"static:7?x=y":                           {"unknown parameter"},
		"etcd://u:hunter2@h?reclaim=machine":     {"another one is claimed instead"},
		"redis://u:hunter2@h?claim_delay=soon":   {"not a duration"},
		"postgres://u:hunter2@h/db?claim_dely=0": {"did you mean claim_delay?"},
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("text.pem", []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for url, want := range store {
		checkURL(t, url, drivers.CheckStore(url), want)
		if err := drivers.CheckRegistry(url); err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s as a registry: %v", url, err)
		}
	}
	for url, want := range workers {
		checkURL(t, url, drivers.CheckRegistry(url), want)
	}
}

func checkURL(t *testing.T, url string, err error, want []string) {
	t.Helper()
	if !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("%s: %v, want one that is invalid", url, err)
		return
	}
	for _, fault := range faults(advised(err), want) {
		t.Errorf("%s: %v: %s", url, err, fault)
	}
}

func TestMessagesOfSQLite(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	url := func(name string) string { return "sqlite:" + file(name) }
	for _, name := range []string{"store.db", "read-only.db", "other.db"} {
		if err := initStore(t.Context(), url(name), sample); err != nil {
			t.Fatal(err)
		}
		if err := initRegistry(t.Context(), url(name)); err != nil {
			t.Fatal(err)
		}
	}
	// For root all files can be written. A file whose format is newer cannot.
	future, err := os.OpenFile(file("read-only.db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := future.WriteAt([]byte{3}, 18); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(future.Close(), os.WriteFile(file("text.db"), bytes.Repeat([]byte("text "), 1000), 0o600)); err != nil {
		t.Fatal(err)
	}
	complain(t, "file", []complaint{
		{name: "no store", url: url("none.db"), calls: useStore, want: []string{"was not created", file("none.db")}},
		{name: "no registry", url: url("none.db"), calls: []string{"list workers"}, want: []string{"was not created", file("none.db")}},
		{name: "no folder", url: url("no/folder.db"), calls: []string{"init store", "init workers"}, want: []string{"there is no folder " + file("no"), "create it"}},
		{name: "a folder", url: "sqlite:" + dir, calls: append([]string{"list workers"}, useStore...), want: []string{"cannot be opened", "check its path"}},
		{name: "text", url: url("text.db"), calls: append([]string{"list workers", "init workers"}, allStore...), want: []string{"not an SQLite database", "check its path"}},
		{name: "read-only", url: url("read-only.db"), calls: []string{"advance"}, want: []string{"read-only", "check the rights"}},
		{name: "store again", url: url("store.db"), calls: []string{"init store"}, want: []string{"store.db", "leaf_alloc already"}},
	})
}
