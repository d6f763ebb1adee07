package mysql

import (
	"cmp"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

const (
	// timeout bounds connecting, and each answer: less than a caller allows for both.
	timeout = 4 * time.Second

	conns = sqlstore.StoreConns + 4 // some for a registry next to the store
)

// OpenDB returns a database for [New] and package ticket. The DSN is a plain one of
// github.com/go-sql-driver/mysql, such as "user:password@tcp(db1:3306)/ids", completed as [Prepare]
// does. It does not connect. The error wraps [leaf.ErrInvalid].
func OpenDB(dsn string) (*sql.DB, error) {
	cfg, err := gomysql.ParseDSN(dsn)
	switch {
	case err != nil:
		return nil, fmt.Errorf("open mysql database: %w: %w", leaf.ErrInvalid, err)
	case cfg.DBName == "":
		return nil, fmt.Errorf("open mysql database: %w: the DSN names no database: write user:password@tcp(host:3306)/db", leaf.ErrInvalid)
	}
	Prepare(cfg)
	connector, err := NewConnector([]*gomysql.Config{cfg}, nil)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// Prepare makes cfg open sessions for this package and package ticket: strict, in utf8mb4,
// committing by themselves and one transaction at a time (completion_type=0), with several
// statements in one packet. Missing time limits become four seconds. Another transaction's lock
// ends a statement before that.
func Prepare(cfg *gomysql.Config) {
	cfg.MultiStatements, cfg.InterpolateParams = true, true
	cfg.Timeout = cmp.Or(cfg.Timeout, timeout)
	cfg.ReadTimeout = cmp.Or(cfg.ReadTimeout, timeout)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, timeout)
	params := map[string]string{"innodb_lock_wait_timeout": "3", "sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'"}
	maps.Copy(params, cfg.Params)
	if mode := strings.Trim(params["sql_mode"], "'\""); !strings.Contains(mode, "STRICT_ALL_TABLES") {
		params["sql_mode"] = "'" + strings.Trim(mode+",STRICT_ALL_TABLES", ",") + "'"
	}
	params["autocommit"], params["completion_type"] = "1", "0"
	cfg.Params = params
	// Explicitly: a server's settings may override a client's wishes at the connection.
	_ = cfg.Apply(gomysql.Charset("utf8mb4", "")) // which cannot fail
}
