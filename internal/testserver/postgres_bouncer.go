package testserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// A PgBouncerServer is a private PgBouncer on 127.0.0.1 that shares four sessions of
// a [PostgresServer] among all its clients, transaction by transaction.
type PgBouncerServer struct {
	private
}

// bouncerConfig maps all users to the server's superuser, and ignores the schemas that they
// request.
const bouncerConfig = `[databases]
* = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 500
ignore_startup_parameters = search_path
`

// PgBouncer starts a pooler in front of a server, which ends with t.
func PgBouncer(t TB, server *PostgresServer) *PgBouncerServer {
	t.Helper()
	b := &PgBouncerServer{}
	t.Cleanup(b.Close)
	if err := b.start(server); err != nil {
		t.Fatalf("%v", err)
	}
	return b
}

func (b *PgBouncerServer) start(server *PostgresServer) error {
	binary, err := findBouncer()
	if err != nil {
		return err
	}
	if b.Dir, err = privateDir("leafpb"); err != nil {
		return fmt.Errorf("start pgbouncer: %w", err)
	}
	if b.Port, err = FreePort(); err != nil {
		return err
	}
	config := filepath.Join(b.Dir, "pgbouncer.ini")
	if err := os.WriteFile(config, fmt.Appendf(nil, bouncerConfig, server.Port, b.Port), 0o600); err != nil {
		return fmt.Errorf("start pgbouncer: %w", err)
	}
	if err := give(config); err != nil {
		return fmt.Errorf("start pgbouncer: %w", err)
	}
	cmd, err := unprivileged(binary, config)
	if err != nil {
		return err
	}
	cmd.Dir = b.Dir
	if b.proc, err = start(cmd); err != nil {
		return fmt.Errorf("start pgbouncer: %w", err)
	}
	db, err := openPostgres(b.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	return b.proc.await("start pgbouncer", answers(db))
}

// URL names a database of the server, by way of the pooler.
func (b *PgBouncerServer) URL(database string) string {
	return postgresURL("postgres", "", b.Port, database)
}

func findBouncer() (string, error) {
	const binary = "/usr/sbin/pgbouncer"
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("find pgbouncer: install pgbouncer (make test does it on Debian as root): %w", err)
	}
	return binary, nil
}
