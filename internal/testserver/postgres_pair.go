package testserver

import (
	"errors"
	"fmt"
	"os"
)

// A PostgresPairServer is a primary server and its standby by asynchronous replication.
type PostgresPairServer struct {
	Primary, Standby *PostgresServer
}

// PostgresPair starts a primary and its standby, which end with t.
func PostgresPair(t TB) *PostgresPairServer {
	t.Helper()
	p := &PostgresPairServer{Primary: Postgres(t, nil)}
	dir, err := privateDir("leafpg")
	if err != nil {
		t.Fatalf("start postgres: %v", err)
	}
	p.Standby = &PostgresServer{private: private{Dir: dir}}
	t.Cleanup(p.Standby.Close)
	if err := p.copy(); err != nil {
		t.Fatalf("%v", err)
	}
	if err := p.Standby.Start(); err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// copy makes the standby's data of the primary's.
func (p *PostgresPairServer) copy() error {
	binary, err := findPostgres("pg_basebackup")
	if err != nil {
		return err
	}
	cmd, err := unprivileged(binary, "-h", "127.0.0.1", "-p", fmt.Sprint(p.Primary.Port), "-U", "postgres",
		"-D", p.Standby.data(), "-R", "--checkpoint=fast", "--no-sync")
	if err != nil {
		return err
	}
	cmd.Dir = p.Standby.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("copy postgres data: %w\n%s", err, out)
	}
	return nil
}

// CatchUp returns when the standby has all that the primary has committed.
func (p *PostgresPairServer) CatchUp(t TB) {
	t.Helper()
	var at string
	if err := p.Primary.query(&at, "SELECT pg_current_wal_lsn()::text"); err != nil {
		t.Fatalf("%v", err)
	}
	if err := p.Standby.await("SELECT pg_last_wal_replay_lsn() >= '" + at + "'"); err != nil {
		t.Fatalf("%v", err)
	}
}

// Break cuts the standby off: the primary's later commits are lost when the standby takes over.
func (p *PostgresPairServer) Break(t TB) {
	t.Helper()
	p.Standby.Exec(t, "postgres", "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()")
	if err := p.Standby.await("SELECT count(*) = 0 FROM pg_stat_wal_receiver"); err != nil {
		t.Fatalf("%v", err)
	}
}

// FailOver kills the primary and promotes the standby.
func (p *PostgresPairServer) FailOver(t TB) {
	t.Helper()
	if err := p.Primary.Kill(); err != nil {
		t.Fatalf("%v", err)
	}
	p.Standby.Exec(t, "postgres", "SELECT pg_promote()")
}

// SwitchRoles makes the dead former primary a new standby of the promoted server, and returns when
// it has caught up.
func (p *PostgresPairServer) SwitchRoles(t TB) {
	t.Helper()
	p.Primary, p.Standby = p.Standby, p.Primary
	steps := []func() error{p.Standby.Kill, func() error { return os.RemoveAll(p.Standby.data()) }, p.copy, p.Standby.Start}
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("make a standby of the former primary: %v", err)
		}
	}
	p.CatchUp(t)
}

// URL names the database on both servers as a store URL, for the superuser.
func (p *PostgresPairServer) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable", p.Primary.Port, p.Standby.Port, database)
}

func (s *PostgresServer) query(into any, query string) error {
	db, err := s.open("postgres")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.QueryRow(query).Scan(into); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// await returns when a query is answered with true.
func (s *PostgresServer) await(query string) error {
	return s.proc.await(query, func() error {
		var done bool
		err := s.query(&done, query)
		if err == nil && !done {
			err = errors.New("it is not true")
		}
		return err
	})
}
