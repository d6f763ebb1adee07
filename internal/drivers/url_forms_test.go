package drivers_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A URL names a socket as other programs do.
func TestSockets(t *testing.T) {
	pg, maria := testserver.Postgres(t, nil), testserver.MariaDB(t, nil)
	socket := filepath.Join(t.TempDir(), "redis.sock")
	testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"unixsocket", socket}}})
	folder := fmt.Sprintf("port=%d&sslmode=disable", pg.Port)
	for name, storeURL := range map[string]string{
		"postgres, parameter": "postgres://postgres@/" + pg.NewDatabase(t) + "?host=" + pg.Dir + "&" + folder,
		"postgres, host":      "postgresql://postgres@" + url.QueryEscape(pg.Dir) + "/" + pg.NewDatabase(t) + "?" + folder,
		"mysql":               "mysql://root@unix(" + maria.Socket() + ")/" + maria.NewDatabase(t),
		"redis":               "redis+unix://" + socket,
		"redis, database":     "redis+unix://" + socket + "?db=3&prefix=other",
	} {
		t.Run(name, func(t *testing.T) {
			roundTrip(t, storeURL)
			if err := initRegistry(t.Context(), storeURL); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPostgresSchemeHasTwoNames(t *testing.T) {
	short, err1 := keyOf("postgres://u:p@h/db")
	long, err2 := keyOf("PostgreSQL://u:p@h/db")
	if err1 != nil || err2 != nil || short != long {
		t.Errorf("%s, %v and %s, %v: want one key", short, err1, long, err2)
	}
}

// The URL decides the schema of the tables. A node keeps separate memories for the counters of two
// schemas.
func TestPostgresSearchPath(t *testing.T) {
	server := testserver.Postgres(t, nil)
	db := server.NewDatabase(t)
	server.Exec(t, db, "CREATE SCHEMA one", "CREATE SCHEMA two")
	plain := server.URL(db)
	keys := make(map[string]bool)
	for _, storeURL := range []string{plain + "&search_path=one", plain + "&options=-c%20search_path%3Dtwo", plain} {
		roundTrip(t, storeURL)
		if err := initRegistry(t.Context(), storeURL); err != nil {
			t.Error(err)
		}
		key, err := keyOf(storeURL)
		if err != nil {
			t.Error(err)
		}
		keys[key] = true
	}
	if len(keys) != 3 {
		t.Errorf("keys %v", keys)
	}
	server.Exec(t, db, "UPDATE one.leaf_alloc SET max_id = 100", "UPDATE two.leaf_alloc SET max_id = 200", "UPDATE public.leaf_alloc SET max_id = 300")
	for params, want := range map[string]int64{"&search_path=one": 100, "&search_path=two,public": 200, "": 300} {
		if g, err := open(t, plain+params).Advance(t.Context(), "order", 1); err != nil || g.Range.Start != want {
			t.Errorf("%q: %v, %v, want an ID from %d", params, g, err, want)
		}
	}
	err := initStore(t.Context(), plain+"&search_path=three", sample)
	if err == nil || !strings.Contains(err.Error(), "CREATE SCHEMA, or correct search_path") {
		t.Errorf("no such schema: %v", err)
	}
}

// A pooler that ignores the schema would have the tables of another one be used.
func TestPostgresSearchPathIgnored(t *testing.T) {
	server := testserver.Postgres(t, nil)
	db := server.NewDatabase(t)
	server.Exec(t, db, "CREATE SCHEMA one")
	pooled := testserver.PgBouncer(t, server).URL(db)
	if err := initStore(t.Context(), pooled, sample); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, pooled+"&search_path=one").Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "not one as it was asked for") {
		t.Errorf("advance: %v", err)
	}
	if err := initStore(t.Context(), pooled+"&search_path=one", sample); err == nil || !strings.Contains(err.Error(), "not one as it was asked for") {
		t.Errorf("init: %v", err)
	}
}

func TestPostgresSettingIsPassedOn(t *testing.T) {
	server := testserver.Postgres(t, nil)
	db := server.NewDatabase(t)
	storeURL := server.URL(db)
	if err := initStore(t.Context(), storeURL, sample); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, db, "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'",
		"CREATE TRIGGER slow BEFORE UPDATE ON leaf_alloc FOR EACH ROW EXECUTE FUNCTION slow()")
	_, err := open(t, storeURL+"&statement_timeout=200").Advance(t.Context(), "order", 1)
	if err == nil || !strings.Contains(err.Error(), "statement_timeout") {
		t.Errorf("advance: %v", err)
	}
}

// A wrong password is the reported reason, even if pgx also tries another encryption.
func TestPostgresWrongPassword(t *testing.T) {
	cert, key := testserver.Certificate(t)
	for name, opts := range map[string]*testserver.PostgresOptions{
		"no encryption": nil,
		"encrypted only": {Settings: []string{"ssl=on", "ssl_cert_file=" + cert, "ssl_key_file=" + key},
			Access: []string{"hostssl all app 127.0.0.1/32 scram-sha-256", "host all app 127.0.0.1/32 reject"}},
		"plain only": {Settings: []string{"ssl=on", "ssl_cert_file=" + cert, "ssl_key_file=" + key},
			Access: []string{"hostnossl all app 127.0.0.1/32 scram-sha-256", "host all app 127.0.0.1/32 reject"}},
	} {
		server := testserver.Postgres(t, opts)
		db := server.NewDatabase(t)
		server.Exec(t, db, "CREATE USER app PASSWORD 'right'")
		for _, mode := range []string{"", "?sslmode=prefer", "?sslmode=allow"} {
			storeURL := strings.Replace(server.URLOf("app", "wrong", db), "?sslmode=disable", mode, 1)
			_, err := open(t, storeURL).Advance(t.Context(), "order", 1)
			if err == nil || !strings.Contains(err.Error(), "check the user name and the password") {
				t.Errorf("%s%s: %v", name, mode, err)
				continue
			}
			for _, not := range []string{"TLS", "encryption", "sslmode", "pg_hba"} {
				if strings.Contains(err.Error(), not) {
					t.Errorf("%s%s: %v: speaks of %s", name, mode, err, not)
				}
			}
		}
	}
}

func TestMySQLAuthority(t *testing.T) {
	cert, key := testserver.Certificate(t)
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--ssl-cert=" + cert, "--ssl-key=" + key}})
	for _, params := range []string{"?ca=" + cert, "?tls=true&ca=" + cert} {
		db := server.NewDatabase(t)
		roundTrip(t, server.URL(db)+params)
	}
	db := server.NewDatabase(t)
	server.Exec(t, db, "CREATE USER secure IDENTIFIED BY 'hush' REQUIRE SSL", "GRANT ALL ON *.* TO secure")
	roundTrip(t, strings.Replace(server.URL(db), "root@", "secure:hush@", 1)+"?ca="+cert)
	other, _ := testserver.Certificate(t)
	for params, want := range map[string]string{
		"?tls=true": "ca=FILE", "?ca=" + other: "certificate is not trusted", "?tls=skip-verify&ca=" + cert: "leave tls out",
		"?ca=" + key: "no PEM certificate", "?ca=/nowhere": "/nowhere", "?cert=" + cert: "belong together",
	} {
		err := with(server.URL(db)+params, func(b *drivers.Backend) error {
			s, err := b.Store()
			if err == nil {
				_, err = s.Advance(t.Context(), "order", 1)
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", params, err)
		}
	}
}
