package testserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// PostgresOptions are the options of [Postgres]; nil means all defaults.
type PostgresOptions struct {
	// Settings are those of postgresql.conf, such as "wal_level=minimal".
	Settings []string

	// Access are lines of pg_hba.conf that come before all others.
	Access []string
}

// A PostgresServer is a private PostgreSQL on 127.0.0.1. Its superuser postgres needs
// no password, every other user that a test creates needs one, and one of the name
// [TLSOnly] needs encryption, which the server does not offer. Its methods are not
// safe for concurrent use, except for URL and NewDatabase.
type PostgresServer struct {
	private // with the socket in its folder

	settings  []string
	access    []string
	databases atomic.Int64
}

// TLSOnly is the name of a user of a [PostgresServer] that may not come unencrypted.
const TLSOnly = "tls_only"

// postgresAccess is the server's pg_hba.conf.
const postgresAccess = `hostssl all ` + TLSOnly + ` 127.0.0.1/32 scram-sha-256
host all ` + TLSOnly + ` 127.0.0.1/32 reject
local all postgres trust
host all,replication postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

// Postgres starts a server that ends with t.
func Postgres(t TB, opts *PostgresOptions) *PostgresServer {
	t.Helper()
	s, err := StartPostgres(opts)
	return until(t, s, err)
}

// StartPostgres starts a server that ends with [PostgresServer.Close].
func StartPostgres(opts *PostgresOptions) (*PostgresServer, error) {
	if opts == nil {
		opts = &PostgresOptions{}
	}
	dir, err := privateDir("leafpg")
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	s := &PostgresServer{private: private{Dir: dir}, settings: opts.Settings, access: opts.Access}
	if err := s.install(); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.Start(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *PostgresServer) install() error {
	binary, err := findPostgres("initdb")
	if err != nil {
		return err
	}
	cmd, err := unprivileged(binary, "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if err != nil {
		return err
	}
	cmd.Dir = s.Dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("create postgres data: %w\n%s", err, out)
	}
	// The file is the server's own: writing to it leaves its owner as it is.
	if err := os.WriteFile(filepath.Join(s.data(), "pg_hba.conf"), []byte(strings.Join(append(s.access, postgresAccess), "\n")), 0o600); err != nil {
		return fmt.Errorf("create postgres data: %w", err)
	}
	return nil
}

// Start starts the server after Stop or Kill, on
// the same port and data, and returns when it answers.
func (s *PostgresServer) Start() error {
	binary, err := findPostgres("postgres")
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(startTimeout); ; {
		fresh := s.Port == 0
		if fresh {
			if s.Port, err = FreePort(); err != nil {
				return err
			}
		}
		err = s.run(binary)
		switch {
		case err == nil || time.Now().After(deadline):
			return err
		case fresh && strings.Contains(err.Error(), "Address already in use"):
			s.Port = 0 // no test knows it yet
		case !strings.Contains(err.Error(), "shared memory block") && !strings.Contains(err.Error(), "lock file"):
			return err
		}
		// The children of a killed server soon end by themselves.
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *PostgresServer) run(binary string) error {
	args := []string{"-D", s.data(), "-p", fmt.Sprint(s.Port)}
	// Many connections: a server frees one some time after its client has closed it.
	settings := []string{"listen_addresses=127.0.0.1", "unix_socket_directories=" + s.Dir, "shared_buffers=32MB", "logging_collector=off",
		"max_connections=500"}
	for _, setting := range slices.Concat(settings, s.settings) {
		args = append(args, "-c", setting)
	}
	cmd, err := unprivileged(binary, args...)
	if err != nil {
		return err
	}
	cmd.Dir = s.Dir
	proc, err := start(cmd)
	if err != nil {
		return fmt.Errorf("start postgres: %w", err)
	}
	s.proc = proc
	db, err := s.open("postgres")
	if err != nil {
		return err
	}
	defer db.Close()
	return proc.await("start postgres", answers(db))
}

// Stop ends the server in good order, also with clients connected, and waits for its end.
func (s *PostgresServer) Stop() error { return s.proc.end(syscall.SIGINT) }

// Pause freezes the server and all its children: connections stand, nothing answers.
func (s *PostgresServer) Pause() error { return s.signalAll(syscall.SIGSTOP) }

// Resume ends [PostgresServer.Pause].
func (s *PostgresServer) Resume() error { return s.signalAll(syscall.SIGCONT) }

// signalAll reaches the server first, so that it starts no more children meanwhile.
func (s *PostgresServer) signalAll(sig syscall.Signal) error {
	if err := s.proc.signal(sig); err != nil {
		return fmt.Errorf("signal postgres: %w", err)
	}
	pid := s.proc.cmd.Process.Pid
	children, err := childrenOf(pid)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := syscall.Kill(child, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal a child of postgres: %w", err)
		}
	}
	return nil
}

// Close ends the server and deletes its data.
func (s *PostgresServer) Close() {
	if s.proc != nil && !s.proc.ended() {
		_ = s.Resume()                     // a frozen server ignores the next signal
		_ = s.proc.end(syscall.SIGQUIT)    // at once, but the children too
		_ = s.proc.signal(syscall.SIGKILL) // fails where it has ended
	}
	_ = os.RemoveAll(s.Dir)
}

func (s *PostgresServer) data() string { return filepath.Join(s.Dir, "data") }

// URL names the database as a store URL, for the superuser.
func (s *PostgresServer) URL(database string) string { return s.URLOf("postgres", "", database) }

// URLOf is [PostgresServer.URL] for another user.
func (s *PostgresServer) URLOf(user, password, database string) string {
	return postgresURL(user, password, s.Port, database)
}

func postgresURL(user, password string, port int, database string) string {
	if password != "" {
		user += ":" + password
	}
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", user, port, database)
}

// NewDatabase creates an empty database for one test and returns its name. It is
// dropped with the server.
func (s *PostgresServer) NewDatabase(t TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return name
}

// Exec runs statements, one after the other on one connection, in the database.
func (s *PostgresServer) Exec(t TB, database string, statements ...string) {
	t.Helper()
	db, err := s.open(database)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer db.Close()
	conn, err := db.Conn(context.Background())
	if err != nil {
		t.Fatalf("connect to postgres: %v", err)
	}
	defer conn.Close()
	for _, statement := range statements {
		if _, err := conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func (s *PostgresServer) open(database string) (*sql.DB, error) { return openPostgres(s.URL(database)) }

func openPostgres(url string) (*sql.DB, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open postgres: %w", err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	return stdlib.OpenDB(*cfg), nil
}

// findPostgres looks for a binary of the newest installed release.
func findPostgres(name string) (string, error) {
	paths, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil {
		return "", err
	}
	slices.SortFunc(paths, func(a, b string) int { return release(a) - release(b) })
	if len(paths) > 0 {
		return paths[len(paths)-1], nil
	}
	if found, err := exec.LookPath(name); err == nil {
		return found, nil
	}
	return "", fmt.Errorf("find %s: install postgresql (make test does it on Debian as root)", name)
}

// release is the 15 of /usr/lib/postgresql/15/bin/postgres.
func release(path string) (n int) {
	_, _ = fmt.Sscanf(path, "/usr/lib/postgresql/%d/", &n) // otherwise 0, the oldest
	return n
}
