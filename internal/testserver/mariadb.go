package testserver

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	startTimeout = 2 * time.Minute // on a busy machine; what ends is noticed at once
	stopTimeout  = 20 * time.Second
)

// MariaDBOptions are the options of [MariaDB]; nil means all defaults.
type MariaDBOptions struct {
	// Args are further arguments of mariadbd, such as "--sql-mode=".
	Args []string
}

// A MariaDBServer is a private MariaDB on 127.0.0.1 whose root has no password.
// Its methods are not safe for concurrent use, except for DSN, URL and NewDatabase.
type MariaDBServer struct {
	private // with the socket in its folder

	args      []string
	databases atomic.Int64
}

// MariaDB starts a server that ends with t.
func MariaDB(t TB, opts *MariaDBOptions) *MariaDBServer {
	t.Helper()
	s, err := StartMariaDB(opts)
	return until(t, s, err)
}

// StartMariaDB starts a server that ends with [MariaDBServer.Close].
func StartMariaDB(opts *MariaDBOptions) (*MariaDBServer, error) {
	if opts == nil {
		opts = &MariaDBOptions{}
	}
	s := &MariaDBServer{args: opts.Args}
	return privately(s, &s.private, "leafdb") // not t.TempDir: a socket's path is shorter than 108 bytes
}

func (s *MariaDBServer) install() error {
	binary, err := find("mariadb-install-db")
	if err != nil {
		return err
	}
	if err := os.Mkdir(s.temp(), 0o700); err != nil {
		return fmt.Errorf("create mariadb data: %w", err)
	}
	args := []string{"--no-defaults", "--datadir=" + s.data(), "--tmpdir=" + s.temp(), "--auth-root-authentication-method=normal", "--skip-test-db"}
	out, err := exec.Command(binary, append(args, asRoot()...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("create mariadb data: %w\n%s", err, out)
	}
	return nil
}

// Start starts the server after Stop or Kill, on
// the same port and data, and returns when it answers.
func (s *MariaDBServer) Start() error {
	if _, err := os.Stat(s.temp()); err != nil {
		if err := s.install(); err != nil {
			return err
		}
	}
	binary, err := find("mariadbd")
	if err != nil {
		return err
	}
	return s.startOn(func() error { return s.run(binary) })
}

func (s *MariaDBServer) run(binary string) error {
	args := []string{"--no-defaults", "--datadir=" + s.data(), "--tmpdir=" + s.temp(), "--socket=" + s.Socket(),
		fmt.Sprintf("--port=%d", s.Port), "--bind-address=127.0.0.1", "--skip-name-resolve",
		"--innodb-buffer-pool-size=64M", "--performance-schema=OFF", "--max-connections=500"}
	args = append(append(args, asRoot()...), s.args...)
	proc, err := start(exec.Command(binary, args...))
	if err != nil {
		return fmt.Errorf("start mariadb: %w", err)
	}
	s.proc = proc
	db, err := s.open("")
	if err != nil {
		return err
	}
	defer db.Close()
	return proc.await("start mariadb", answers(db))
}

// Socket is the path of the server's Unix socket.
func (s *MariaDBServer) Socket() string { return filepath.Join(s.Dir, "s") }

func (s *MariaDBServer) data() string { return filepath.Join(s.Dir, "data") }

// temp is the server's own folder: at its start a server deletes the apparent leftovers there, even
// those of another server.
func (s *MariaDBServer) temp() string { return filepath.Join(s.Dir, "tmp") }

// DSN names the database for go-sql-driver, as root, with nothing but a time limit
// set: a test sees the server's own defaults.
func (s *MariaDBServer) DSN(database string) string {
	return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s?timeout=5s", s.Port, database)
}

// URL names the database as a store URL.
func (s *MariaDBServer) URL(database string) string {
	return fmt.Sprintf("mysql://root@127.0.0.1:%d/%s", s.Port, database)
}

// NewDatabase creates an empty database for one test and returns its name. It is
// dropped with the server.
func (s *MariaDBServer) NewDatabase(t TB) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	s.Exec(t, "", "CREATE DATABASE "+name)
	return name
}

// Exec runs statements, one after the other on one connection, in the database, or
// outside of any if it is "".
func (s *MariaDBServer) Exec(t TB, database string, statements ...string) {
	t.Helper()
	if err := s.exec(database, statements...); err != nil {
		t.Fatalf("%v", err)
	}
}

func (s *MariaDBServer) exec(database string, statements ...string) error {
	db, err := s.open(database)
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func (s *MariaDBServer) open(database string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(s.DSN(database))
	if err != nil {
		return nil, fmt.Errorf("open mariadb: %w", err)
	}
	cfg.Logger = &mysql.NopLogger{} // errors before the server is up are normal
	cfg.ReadTimeout = startTimeout
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("open mariadb: %w", err)
	}
	return sql.OpenDB(connector), nil
}

// find looks for a server's binary, also where only root's PATH leads.
func find(name string) (string, error) {
	for _, path := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("find %s: install mariadb-server (make test does it on Debian as root)", name)
}

// asRoot allows the server to run as root where the tests do.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}
