package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
)

const (
	postgresPort  = "5432"
	postgresConns = 16
)

func openPostgres(rest string, o *Options) (Store, error) {
	db, err := postgresDB(rest)
	if err != nil {
		return nil, err
	}
	store, err := sqldb.OpenPostgres(db, &sqldb.Options{Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &owned{store, db}, nil
}

func initPostgres(ctx context.Context, rest string, o InitOptions) error {
	db, err := postgresDB(rest)
	if err != nil {
		return err
	}
	defer db.Close()
	return sqldb.InitPostgres(ctx, db, o.Tags)
}

func existsPostgres(ctx context.Context, rest string) (bool, error) {
	db, err := postgresDB(rest)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return sqldb.ExistsPostgres(ctx, db)
}

// keyPostgres names the hosts in order, whatever order the URL has them in.
func keyPostgres(rest string) (string, error) {
	cfg, err := postgresConfig(rest)
	if err != nil {
		return "", err
	}
	hosts := []string{strings.ToLower(postgresHost(cfg.Host, cfg.Port))}
	for _, f := range cfg.Fallbacks { // one host has several: with and without encryption
		hosts = append(hosts, strings.ToLower(postgresHost(f.Host, f.Port)))
	}
	slices.Sort(hosts)
	return "//" + strings.Join(slices.Compact(hosts), ",") + "/" + cfg.Database, nil
}

func postgresHost(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func parsePostgresRegistry(rest string) (registrySource, error) {
	address, query, _ := strings.Cut(rest, "?")
	if at := strings.LastIndex(rest, "@"); at > len(address) { // the password holds a question mark
		return registrySource{}, badPostgres("a question mark in the password is not percent-encoded: write %3F")
	}
	params, err := parseParams(query)
	if err != nil {
		return registrySource{}, err
	}
	terms, err := cutTerms(params, false)
	if err != nil {
		return registrySource{}, err
	}
	plain := address + "?" + params.Encode()
	key, err := keyPostgres(plain)
	if err != nil {
		return registrySource{}, err
	}
	with := func(do func(*sql.DB) error) error {
		db, err := postgresDB(plain)
		if err != nil {
			return err
		}
		defer db.Close()
		return do(db)
	}
	return registrySource{
		key:   key,
		terms: terms,
		open:  func(o RegistryOptions) (Registry, error) { return openPostgresRegistry(plain, o) },
		init: func(ctx context.Context) error {
			return with(func(db *sql.DB) error { return sqldb.InitPostgresRegistry(ctx, db) })
		},
		exists: func(ctx context.Context) (exists bool, err error) {
			err = with(func(db *sql.DB) (err error) { exists, err = sqldb.ExistsPostgresRegistry(ctx, db); return err })
			return exists, err
		},
	}, nil
}

func openPostgresRegistry(rest string, o RegistryOptions) (Registry, error) {
	db, err := postgresDB(rest)
	if err != nil {
		return nil, err
	}
	registry, err := sqldb.OpenPostgresRegistry(db, &sqldb.Options{Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ownedRegistry{registry, db}, nil
}

func postgresDB(rest string) (*sql.DB, error) {
	cfg, err := postgresConfig(rest)
	if err != nil {
		return nil, err
	}
	db := stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	return db, nil
}

func postgresParams() []string {
	return []string{"sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "connect_timeout"}
}

// postgresConfig reads //user:password@host:port,host:port/db?parameters. What the
// URL leaves out pgx takes from PGPASSWORD, PGSSLMODE and the like, and from ~/.pgpass.
func postgresConfig(rest string) (*pgx.ConnConfig, error) {
	after, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return nil, badPostgres("two slashes are missing after postgres:")
	}
	address, query, _ := strings.Cut(after, "?")
	hosts, name, _ := strings.Cut(address[strings.LastIndex(address, "@")+1:], "/")
	if hosts == "" {
		return nil, badPostgres("the host is missing")
	}
	if decoded, err := url.PathUnescape(name); err != nil || decoded == "" || strings.Contains(decoded, "/") {
		return nil, badPostgres("the name of the database is missing or malformed")
	}
	params, err := parseParams(query)
	if err != nil {
		return nil, err
	}
	if err := onlyParams(params, postgresParams()...); err != nil {
		return nil, err
	}
	if !params.Has("connect_timeout") {
		params.Set("connect_timeout", "5")
	}
	if strings.Contains(hosts, ",") && !params.Has("target_session_attrs") {
		params.Set("target_session_attrs", "read-write")
	}
	cfg, err := pgx.ParseConfig("postgres://" + address + "?" + params.Encode())
	if err != nil {
		return nil, badPostgres("the user, the password, a host, a port or a parameter is malformed, or a certificate cannot be read")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // what package sqldb asks for anyway
	return cfg, nil
}

// badPostgres never quotes the URL, which may hold a password.
func badPostgres(what string) error {
	return fmt.Errorf("%w: %s: write postgres://user:password@host:%s/db, with reserved characters percent-encoded", leaf.ErrInvalid, what, postgresPort)
}
