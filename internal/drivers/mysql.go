package drivers

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
)

const (
	mysqlPort    = "3306"
	mysqlTimeout = 5 * time.Second // to connect, and for each answer
	mysqlConns   = 16
)

func openMySQL(rest string, o *Options) (Store, error) {
	db, err := mysqlDB(rest, o.Logger)
	if err != nil {
		return nil, err
	}
	store, err := sqldb.OpenMySQL(db, &sqldb.Options{Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	return &owned{store, db}, nil
}

func initMySQL(ctx context.Context, rest string, o InitOptions) error {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return sqldb.InitMySQL(ctx, db, o.Tags)
}

func existsMySQL(ctx context.Context, rest string) (bool, error) {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return sqldb.ExistsMySQL(ctx, db)
}

func keyMySQL(rest string) (string, error) {
	cfg, err := mysqlConfig(rest)
	if err != nil {
		return "", err
	}
	return "//" + strings.ToLower(cfg.Addr) + "/" + cfg.DBName, nil
}

func mysqlDB(rest string, logger *slog.Logger) (*sql.DB, error) {
	cfg, err := mysqlConfig(rest)
	if err != nil {
		return nil, err
	}
	cfg.Logger = driverLog{logger}
	// Said aloud: a server may be told to ignore what a client says when it connects.
	if err := cfg.Apply(mysql.Charset("utf8mb4", "")); err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(mysqlConns)
	db.SetMaxIdleConns(mysqlConns)
	return db, nil
}

// driverLog takes what the MySQL driver has to say; the error itself is returned.
type driverLog struct{ logger *slog.Logger }

func (l driverLog) Print(v ...any) {
	if l.logger != nil {
		l.logger.Debug("mysql driver", "msg", fmt.Sprint(v...))
	}
}

// mysqlConfig reads //user:password@host:port/db?parameters.
func mysqlConfig(rest string) (*mysql.Config, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return nil, badMySQL("two slashes are missing after mysql:")
	}
	cfg := mysqlDefaults()
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := setUser(cfg, rest[:at]); err != nil {
			return nil, err
		}
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	if err := setAddress(cfg, rest); err != nil {
		return nil, err
	}
	if err := setParameters(cfg, query); err != nil {
		return nil, err
	}
	return cfg, nil
}

// mysqlDefaults is a configuration with what package sqldb asks of each session. A
// lock that another transaction holds ends the statement before the read times out.
func mysqlDefaults() *mysql.Config {
	cfg := mysql.NewConfig()
	cfg.MultiStatements, cfg.InterpolateParams = true, true
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = mysqlTimeout, mysqlTimeout, mysqlTimeout
	cfg.Params = map[string]string{
		"sql_mode":                 "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
		"autocommit":               "1",
		"innodb_lock_wait_timeout": "3",
	}
	return cfg
}

func setUser(cfg *mysql.Config, userinfo string) (err error) {
	user, password, _ := strings.Cut(userinfo, ":")
	if cfg.User, err = url.PathUnescape(user); err != nil {
		return badMySQL("the user name is not percent-encoded: write %25 for a percent sign")
	}
	if cfg.Passwd, err = url.PathUnescape(password); err != nil {
		return badMySQL("the password is not percent-encoded: write %25 for a percent sign")
	}
	return nil
}

func setAddress(cfg *mysql.Config, address string) (err error) {
	host, name, _ := strings.Cut(address, "/")
	if socket, ok := strings.CutPrefix(address, "unix("); ok {
		cfg.Net = "unix"
		if cfg.Addr, name, ok = strings.Cut(socket, ")/"); !ok {
			return badMySQL("a socket is written unix(/path)/db")
		}
	} else if cfg.Addr, err = tcpAddress(host); err != nil {
		return err
	} else {
		cfg.Net = "tcp"
	}
	if cfg.DBName, err = url.PathUnescape(name); err != nil || cfg.DBName == "" || strings.Contains(name, "/") {
		return badMySQL("the name of the database is missing or malformed")
	}
	return nil
}

func tcpAddress(host string) (string, error) {
	if strings.Contains(host, ",") {
		return "", badMySQL("it names several hosts: name the primary server alone")
	}
	u := url.URL{Host: host}
	port := u.Port()
	if port == "" {
		port = mysqlPort
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 ||
		u.Hostname() == "" || strings.ContainsAny(u.Hostname(), " :") && !strings.HasPrefix(host, "[") {
		return "", badMySQL("the host or its port is malformed")
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

func mysqlParams() []string { return []string{"tls", "timeout", "readTimeout", "writeTimeout"} }

func setParameters(cfg *mysql.Config, query string) error {
	params, err := url.ParseQuery(query)
	if err != nil {
		return badMySQL("the parameters are malformed")
	}
	durations := map[string]*time.Duration{
		"timeout": &cfg.Timeout, "readTimeout": &cfg.ReadTimeout, "writeTimeout": &cfg.WriteTimeout,
	}
	for name, values := range params {
		value := values[len(values)-1]
		if d := durations[name]; d != nil {
			if *d, err = time.ParseDuration(value); err != nil || *d <= 0 {
				return badMySQL(name + " is no duration above 0 such as 5s")
			}
		} else if name != "tls" {
			return badMySQL(unknownParam(name, mysqlParams()))
		} else if !slices.Contains([]string{"true", "false", "skip-verify", "preferred"}, value) {
			return badMySQL("tls is none of true, false, skip-verify, preferred")
		} else {
			cfg.TLSConfig = value
		}
	}
	return nil
}

// badMySQL never quotes the URL, which may hold a password.
func badMySQL(what string) error {
	return fmt.Errorf("%w: %s: write mysql://user:password@host:3306/db, with reserved characters percent-encoded", leaf.ErrInvalid, what)
}
