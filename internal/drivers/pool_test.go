package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// The registry uses the connections of the store.
func TestOnePool(t *testing.T) {
	mariadb, postgres, redis := testserver.MariaDB(t, nil), testserver.Postgres(t, nil), testserver.Redis(t, nil)
	for name, url := range map[string]string{
		"mysql": mariadb.URL(mariadb.NewDatabase(t)), "postgres": postgres.URL(postgres.NewDatabase(t)), "redis": redis.URL(),
	} {
		t.Run(name, func(t *testing.T) {
			_, host, _ := strings.Cut(url, "//")
			host = host[strings.LastIndex(host, "@")+1:]
			host, _, _ = strings.Cut(host, "/")
			proxy, accepted := countingProxy(t, host)
			b := backend(t, strings.Replace(url, host, proxy, 1))
			if err := b.Tags.Init(t.Context(), sample); err != nil {
				t.Fatal(err)
			}
			if err := b.Workers.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			store, err := b.Store()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.Advance(t.Context(), sample.Name, 1); err != nil {
				t.Fatal(err)
			}
			before := accepted.Load()
			registry, err := b.Registry(nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := registry.List(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := accepted.Load(); before == 0 || n != before {
				t.Errorf("%d connections for the store, and %d with the registry", before, n)
			}
		})
	}
}

// While the table of tags is locked and many callers wait for it, the registry answers: else
// leases would not be extended.
func TestRegistryBesideALockedStore(t *testing.T) {
	mariadb, postgres := testserver.MariaDB(t, nil), testserver.Postgres(t, nil)
	m, p := mariadb.NewDatabase(t), postgres.NewDatabase(t)
	for name, server := range map[string]struct{ url, driver, dsn, lock string }{
		"mysql":    {mariadb.URL(m), "mysql", mariadb.DSN(m), "LOCK TABLES leaf_alloc WRITE"},
		"postgres": {postgres.URL(p), "pgx", postgres.URL(p), "LOCK TABLE leaf_alloc"},
	} {
		t.Run(name, func(t *testing.T) {
			b := backend(t, server.url)
			if err := errors.Join(b.Tags.Init(t.Context(), sample), b.Workers.Init(t.Context())); err != nil {
				t.Fatal(err)
			}
			store, err1 := b.Store()
			registry, err2 := b.Registry(nil)
			db, err3 := sql.Open(server.driver, server.dsn)
			if err := errors.Join(err1, err2, err3); err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := store.Advance(t.Context(), sample.Name, 1); err != nil {
				t.Fatal(err)
			}
			tx, err := db.BeginTx(t.Context(), nil)
			if err == nil {
				defer func() { _ = tx.Rollback() }()
				_, err = tx.ExecContext(t.Context(), server.lock)
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			defer callers.Wait()
			defer stop()
			for range 64 {
				callers.Go(func() { _, _ = store.Advance(ctx, sample.Name, 1) }) // it fails
			}
			time.Sleep(time.Second)
			soon, cancel := context.WithTimeout(t.Context(), 2*time.Second) // before the server gives the others up
			defer cancel()
			if _, err := registry.Load(soon, 1); err != nil {
				t.Error(err)
			}
		})
	}
}

// countingProxy returns an address that leads to host, and how many connections it took.
func countingProxy(t *testing.T, host string) (addr string, accepted *atomic.Int64) {
	t.Helper()
	accepted = new(atomic.Int64)
	return testserver.Proxy(t, func(in net.Conn) {
		accepted.Add(1)
		out, err := net.Dial("tcp", host)
		if err != nil {
			return
		}
		defer out.Close()
		go func() {
			_, _ = io.Copy(out, in) // until either side closes
			out.Close()
		}()
		_, _ = io.Copy(in, out)
	}), accepted
}
