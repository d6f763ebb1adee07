package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// A Connector connects as pgx does; it is for [sql.OpenDB]. After a connection has broken or fallen
// silent, the Connector gives up all older ones: the cause, such as a moved address or a frozen
// server, most likely affects them too, and each would cost a call of its own.
type Connector struct {
	driver.Connector
	hosts      string       // as the configuration names them; empty: not known
	generation atomic.Int64 // moves when the connections are given up
}

// generationKey is the key under which a connection keeps the generation it is of.
const generationKey = "leaf generation"

// NewConnector returns a connector to the servers that cfg names.
func NewConnector(cfg *pgx.ConnConfig) *Connector {
	hosts := []string{net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port)))}
	for _, f := range cfg.Fallbacks { // one host has several: with and without encryption
		hosts = append(hosts, net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port))))
	}
	c := &Connector{hosts: strings.Join(slices.Compact(hosts), ",")}
	c.Connector = stdlib.GetConnector(*cfg,
		stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
			conn.PgConn().CustomData()[generationKey] = c.generation.Load()
			return nil
		}),
		// First: a connection that is given up gets no ping.
		stdlib.OptionShouldPing(func(_ context.Context, p stdlib.ShouldPingParams) bool {
			return c.current(p.Conn) && p.IdleDuration > time.Second
		}),
		stdlib.OptionResetSession(func(_ context.Context, conn *pgx.Conn) error {
			if !c.current(conn) {
				return driver.ErrBadConn
			}
			return nil
		}))
	return c
}

func (c *Connector) current(conn *pgx.Conn) bool {
	return conn.PgConn().CustomData()[generationKey] == c.generation.Load()
}

// Driver returns the driver of the connections.
func (c *Connector) Driver() driver.Driver {
	return connectorDriver{c.Connector.Driver(), c}
}

// A connectorDriver leads from a database back to its connector.
type connectorDriver struct {
	driver.Driver
	connector *Connector
}

// connectorOf returns an idle one where db was opened without.
func connectorOf(db *sql.DB) *Connector {
	if d, ok := db.Driver().(connectorDriver); ok {
		return d.connector
	}
	return &Connector{}
}

// broken reports that an error says something of the connections of others too.
func broken(err error) bool {
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, pgconn.ErrConnClosed) || isCode(err, "57P01", "57P02")
}
