package drivers

import (
	"database/sql"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/backend"
)

// postgresParams are those of the connection; the rest are the server's own settings, for
// each session: options sets any other one (options=-c name=value).
func postgresParams() []string {
	return []string{"host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "connect_timeout",
		"search_path", "options", "application_name", "role", "statement_timeout", "lock_timeout",
		"idle_session_timeout", "idle_in_transaction_session_timeout", "default_transaction_isolation"}
}

func parsePostgres(u *target) (*Backend, error) {
	cfg, err := u.postgresConfig()
	if err != nil {
		return nil, err
	}
	pool := newPool(postgres.NewConnector(cfg))
	db, err := postgres.New(pool, &sqldb.Options{Logger: u.log})
	b, err := sqlBackend(postgresKey(cfg), pool, db, err)
	if err == nil {
		b.Hosts = postgresAlone(cfg)
	}
	return b, err
}

// postgresAlone returns the hosts of a URL with several. A standby can be asked too.
func postgresAlone(cfg *pgx.ConnConfig) []backend.Host {
	var names []string
	var alone []*pgx.ConnConfig
	ways := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	for _, way := range ways { // one host has several: with and without encryption
		name := postgresHost(way.Host, way.Port)
		if i := slices.Index(names, name); i >= 0 {
			alone[i].Fallbacks = append(alone[i].Fallbacks, way)
			continue
		}
		one := cfg.Copy()
		one.Host, one.Port, one.TLSConfig, one.Fallbacks, one.ValidateConnect = way.Host, way.Port, way.TLSConfig, nil, nil
		names, alone = append(names, name), append(alone, one)
	}
	return askDatabases(names, func(i int) (*sql.DB, error) { return stdlib.OpenDB(*alone[i]), nil })
}

// postgresKey has the hosts, sorted, and the parameters that decide on the schema.
func postgresKey(cfg *pgx.ConnConfig) string {
	hosts := []string{postgresHost(cfg.Host, cfg.Port)}
	for _, f := range cfg.Fallbacks { // one host has several: with and without encryption
		hosts = append(hosts, postgresHost(f.Host, f.Port))
	}
	slices.Sort(hosts)
	key := "//" + strings.Join(slices.Compact(hosts), ",") + "/" + cfg.Database
	schema := make(url.Values)
	for _, name := range []string{"options", "search_path"} {
		if value, ok := cfg.RuntimeParams[name]; ok {
			schema.Set(name, value)
		}
	}
	if len(schema) > 0 {
		key += "?" + schema.Encode()
	}
	return key
}

func postgresHost(host string, port uint16) string {
	if !strings.HasPrefix(host, "/") { // else the folder of a socket
		host = strings.ToLower(host)
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// postgresConfig parses //user:password@host:port,host:port/db?parameters. The folder of a socket
// may replace the hosts. pgx takes missing parts from PGPASSWORD, PGSSLMODE and the like, and from
// ~/.pgpass.
func (u *target) postgresConfig() (*pgx.ConnConfig, error) {
	if err := u.query(postgresParams()...); err != nil {
		return nil, err
	}
	if err := u.cutUser(); err != nil {
		return nil, err
	}
	hosts, name, _ := strings.Cut(u.address, "/")
	hosts, err := u.postgresHosts(hosts)
	if err != nil {
		return nil, err
	}
	name, err = url.PathUnescape(name)
	if err != nil || name == "" || strings.Contains(name, "/") {
		return nil, malformed("the name of the database is missing or malformed")
	}
	defaults := map[string]string{"connect_timeout": "5"}
	if strings.Contains(hosts, ",") { // and a silent one leaves a call the time for the next
		defaults = map[string]string{"connect_timeout": "1", "target_session_attrs": "read-write"}
	}
	for name, value := range defaults {
		if !u.params.Has(name) {
			u.params.Set(name, value)
		}
	}
	pgURL := url.URL{Scheme: "postgres", Host: hosts, Path: "/" + name}
	pgURL.RawQuery = strings.ReplaceAll(u.params.Encode(), "+", "%20") // pgx takes a plus for a plus
	switch {
	case u.hasPassword:
		pgURL.User = url.UserPassword(u.user, u.password)
	case u.user != "":
		pgURL.User = url.User(u.user)
	}
	cfg, err := pgx.ParseConfig(pgURL.String())
	if err != nil { // its text has the URL in quotes, and then the problem
		_, what, _ := strings.Cut(err.Error(), "`: ")
		return nil, malformed("pgx cannot read it: " + what)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // the driver's own mode
	return cfg, nil
}

// postgresHosts returns the hosts. The folder of a socket, percent-encoded in their place or in the
// parameter host, becomes that parameter.
func (u *target) postgresHosts(hosts string) (string, error) {
	folder, err := url.PathUnescape(hosts)
	if err == nil && strings.HasPrefix(folder, "/") && !u.params.Has("host") {
		hosts = ""
		u.params.Set("host", folder)
	}
	if hosts == "" && strings.HasPrefix(u.params.Get("host"), "/") {
		return "", nil
	}
	if u.params.Has("host") || u.params.Has("port") {
		return "", malformed("host is the folder of a socket, and port the number in the socket's name, of a URL without hosts")
	}
	_, err = hostPorts(hosts, "5432")
	return hosts, err
}
