package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/postgres"
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
	store, err := postgres.NewStore(db, &postgres.Options{Logger: o.Logger})
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
	return postgres.InitStore(ctx, db, o.Tags)
}

func existsPostgres(ctx context.Context, rest string) (bool, error) {
	db, err := postgresDB(rest)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return postgres.ExistsStore(ctx, db)
}

// keyPostgres names the hosts in order, whatever order the URL has them in.
func keyPostgres(rest string) (string, error) {
	cfg, err := postgresConfig(rest)
	if err != nil {
		return "", err
	}
	hosts := []string{postgresHost(cfg.Host, cfg.Port)}
	for _, f := range cfg.Fallbacks { // one host has several: with and without encryption
		hosts = append(hosts, postgresHost(f.Host, f.Port))
	}
	slices.Sort(hosts)
	schema := make(url.Values) // what decides on it
	for _, name := range []string{"options", "search_path"} {
		if value, ok := cfg.RuntimeParams[name]; ok {
			schema.Set(name, value)
		}
	}
	key := "//" + strings.Join(slices.Compact(hosts), ",") + "/" + cfg.Database
	if len(schema) > 0 {
		key += "?" + schema.Encode()
	}
	return key, nil
}

func postgresHost(host string, port uint16) string {
	if !strings.HasPrefix(host, "/") { // else the folder of a socket
		host = strings.ToLower(host)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

func parsePostgresRegistry(rest string) (registrySource, error) {
	address, params, err := splitQuery(rest)
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
			return with(func(db *sql.DB) error { return postgres.InitRegistry(ctx, db) })
		},
		exists: func(ctx context.Context) (exists bool, err error) {
			err = with(func(db *sql.DB) (err error) { exists, err = postgres.ExistsRegistry(ctx, db); return err })
			return exists, err
		},
	}, nil
}

func openPostgresRegistry(rest string, o RegistryOptions) (Registry, error) {
	db, err := postgresDB(rest)
	if err != nil {
		return nil, err
	}
	registry, err := postgres.NewRegistry(db, &postgres.Options{Logger: o.Logger})
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
	db := sql.OpenDB(postgres.NewConnector(cfg))
	db.SetMaxOpenConns(postgresConns)
	db.SetMaxIdleConns(postgresConns)
	return db, nil
}

// postgresParams are those of the connection; postgresSettings are the server's own, for
// each session: options sets any other one (options=-c name=value).
func postgresParams() []string {
	return []string{"host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "connect_timeout"}
}

func postgresSettings() []string {
	return []string{"search_path", "options", "application_name", "role", "statement_timeout", "lock_timeout",
		"idle_session_timeout", "idle_in_transaction_session_timeout", "default_transaction_isolation"}
}

// postgresConfig reads //user:password@host:port,host:port/db?parameters, in which the
// folder of a socket may stand in place of the hosts. What the URL leaves out pgx takes
// from PGPASSWORD, PGSSLMODE and the like, and from ~/.pgpass.
func postgresConfig(rest string) (*pgx.ConnConfig, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return nil, badPostgres("two slashes are missing after the scheme")
	}
	address, params, err := splitQuery(rest)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "postgres"}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		if u.User, err = postgresUser(address[:at]); err != nil {
			return nil, err
		}
		address = address[at+1:]
	}
	hosts, name, _ := strings.Cut(address, "/")
	if u.Host, err = postgresHosts(hosts, params); err != nil {
		return nil, err
	}
	name, err = url.PathUnescape(name)
	if err != nil || name == "" || strings.Contains(name, "/") {
		return nil, badPostgres("the name of the database is missing or malformed")
	}
	if err := checkPostgresParams(params); err != nil {
		return nil, err
	}
	defaults := map[string]string{"connect_timeout": "5"}
	if strings.Contains(hosts, ",") { // and a silent one leaves a call the time for the next
		defaults = map[string]string{"connect_timeout": "1", "target_session_attrs": "read-write"}
	}
	for name, value := range defaults {
		if !params.Has(name) {
			params.Set(name, value)
		}
	}
	u.Path, u.RawQuery = "/"+name, strings.ReplaceAll(params.Encode(), "+", "%20") // pgx takes a plus for a plus
	cfg, err := pgx.ParseConfig(u.String())
	if err != nil { // its text may hold the password
		return nil, badPostgres("pgx cannot read it, or a file that a parameter names")
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // what package driver/postgres asks for anyway
	return cfg, nil
}

// postgresHosts returns the hosts. The folder of a socket, which stands there
// percent-encoded or is the parameter host, becomes that parameter.
func postgresHosts(hosts string, params url.Values) (string, error) {
	folder, err := url.PathUnescape(hosts)
	if err == nil && strings.HasPrefix(folder, "/") && !params.Has("host") {
		hosts = ""
		params.Set("host", folder)
	}
	if hosts == "" && strings.HasPrefix(params.Get("host"), "/") {
		return "", nil
	}
	if params.Has("host") || params.Has("port") {
		return "", badPostgres("host is the folder of a socket, and port the number in the socket's name, of a URL without hosts")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if _, ok := hostPort(host, postgresPort); !ok {
			return "", badPostgres("a host or its port is missing or malformed")
		}
	}
	return hosts, nil
}

func postgresUser(userinfo string) (*url.Userinfo, error) {
	user, password, hasPassword := strings.Cut(userinfo, ":")
	user, err := url.PathUnescape(user)
	if err == nil {
		password, err = url.PathUnescape(password)
	}
	switch {
	case err != nil:
		return nil, badPostgres("the user name or the password is not percent-encoded: write %25 for a percent sign")
	case !hasPassword:
		return url.User(user), nil
	}
	return url.UserPassword(user, password), nil
}

// checkPostgresParams reports what pgx would not say without the whole URL.
func checkPostgresParams(params url.Values) error {
	if err := onlyParams(params, slices.Concat(postgresParams(), postgresSettings())...); err != nil {
		return err
	}
	for name, values := range map[string][]string{
		"sslmode":              {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
		"target_session_attrs": {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"},
	} {
		if params.Has(name) && !slices.Contains(values, params.Get(name)) {
			return badPostgres(name + " is none of " + strings.Join(values, ", "))
		}
	}
	if n, err := strconv.Atoi(params.Get("connect_timeout")); params.Has("connect_timeout") && (err != nil || n < 1) {
		return badPostgres("connect_timeout is no number of seconds above 0")
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if file := params.Get(name); file != "" && file != "system" {
			if _, err := os.ReadFile(file); err != nil {
				return fmt.Errorf("%w: %s: %w", leaf.ErrInvalid, name, err)
			}
		}
	}
	return nil
}

// badPostgres never quotes the URL, which may hold a password.
func badPostgres(what string) error {
	return fmt.Errorf("%w: %s: write postgres://user:password@host:%s/db, or postgres://user@/db?host=/run/postgresql, with reserved characters percent-encoded", leaf.ErrInvalid, what, postgresPort)
}
