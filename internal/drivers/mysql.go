package drivers

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/mysql"
)

const (
	mysqlPort  = "3306"
	mysqlConns = 16
)

func openMySQL(rest string, o *Options) (Store, error) {
	db, err := mysqlDB(rest, o.Logger)
	if err != nil {
		return nil, err
	}
	store, err := mysql.NewStore(db, &mysql.Options{Logger: o.Logger})
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
	return mysql.InitStore(ctx, db, o.Tags)
}

func existsMySQL(ctx context.Context, rest string) (bool, error) {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return mysql.ExistsStore(ctx, db)
}

func mysqlDB(rest string, logger *slog.Logger) (*sql.DB, error) {
	servers, err := mysqlServers(rest)
	if err != nil {
		return nil, err
	}
	for _, cfg := range servers {
		cfg.Logger = driverLog{logger}
	}
	connector, err := mysql.NewConnector(servers, &mysql.Options{Logger: logger})
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

func setUser(cfg *gomysql.Config, userinfo string) (err error) {
	user, password, _ := strings.Cut(userinfo, ":")
	if cfg.User, err = url.PathUnescape(user); err != nil {
		return badMySQL("the user name is not percent-encoded: write %25 for a percent sign")
	}
	if cfg.Passwd, err = url.PathUnescape(password); err != nil {
		return badMySQL("the password is not percent-encoded: write %25 for a percent sign")
	}
	return nil
}

func mysqlParams() []string {
	return []string{"tls", paramCA, paramCert, paramKey, "timeout", "readTimeout", "writeTimeout"}
}

func setParameters(cfg *gomysql.Config, query string) error {
	params, err := url.ParseQuery(query)
	if err != nil {
		return badMySQL("the parameters are malformed")
	}
	if cfg.TLS, err = mysqlTLS(params); err != nil {
		return err
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

// mysqlTLS takes the files of TLS out of the parameters: to name one asks for encryption.
func mysqlTLS(params url.Values) (*tls.Config, error) {
	if !params.Has(paramCA) && !params.Has(paramCert) && !params.Has(paramKey) {
		return nil, nil
	}
	if t := params.Get("tls"); t != "" && t != "true" {
		return nil, badMySQL("ca, cert and key are for a server whose certificate is checked: write tls=true, or leave tls out")
	}
	return cutTLS(params, true, "")
}

// badMySQL never quotes the URL, which may hold a password.
func badMySQL(what string) error {
	return fmt.Errorf("%w: %s: write mysql://user:password@host:3306/db, or several hosts with commas, with reserved characters percent-encoded", leaf.ErrInvalid, what)
}
