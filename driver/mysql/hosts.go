package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"golang.org/x/sync/singleflight"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A Connector connects to the writable one of several MySQL or MariaDB servers; it is for
// [sql.OpenDB]. All connections go to the same server as long as it answers and accepts writes.
// After that the Connector asks all servers at once and takes the first writable one in the list.
// It closes the connections to the former server when no call uses them. It does not repeat failed
// calls.
//
// A server is writable if it is not read-only; on Galera, if it is ready and in the primary
// component; with Group Replication, if it is an online member and sees a majority. Several
// writable servers must be members of one Galera cluster or one group, or be one server under
// several names. Otherwise the Connector uses none of them, because each would grant the same
// ranges. It cannot compare a silent server.
//
// With one server it connects as that server's own connector does, and checks nothing.
type Connector struct {
	hosts  []*host
	logger *slog.Logger
	search singleflight.Group         // the look at all servers, which all who wait for a connection share
	active atomic.Pointer[activeHost] // nil: no server is known that can be written
}

// A host is a server as it is named.
type host struct {
	addr      string
	timeout   time.Duration // to connect
	connector driver.Connector
}

// An activeHost is a server from its choice to the first sign that it can no longer be written.
type activeHost struct {
	*host
	connector *Connector
	over      atomic.Bool
}

// NewConnector returns a connector to servers, configured each as the package documentation says.
// Timeout bounds the whole of connecting to one server; 0 stands for two seconds. It fails,
// wrapping [leaf.ErrInvalid], if a configuration is malformed or two have one address.
func NewConnector(servers []*gomysql.Config, opts *sqldb.Options) (*Connector, error) {
	c := &Connector{logger: opts.WithDefaults().Logger}
	named := make(map[string]bool)
	for _, cfg := range servers {
		if named[cfg.Addr] {
			return nil, fmt.Errorf("connect to mysql: %w: %s is named twice", leaf.ErrInvalid, cfg.Addr)
		}
		named[cfg.Addr] = true
		connector, err := gomysql.NewConnector(cfg)
		if err != nil {
			return nil, fmt.Errorf("connect to mysql: %w: %w", leaf.ErrInvalid, err)
		}
		h := &host{addr: cfg.Addr, timeout: cfg.Timeout, connector: connector}
		if h.timeout <= 0 {
			h.timeout = hostTimeout
		}
		c.hosts = append(c.hosts, h)
	}
	if len(c.hosts) == 0 {
		return nil, fmt.Errorf("connect to mysql: %w: no server", leaf.ErrInvalid)
	}
	return c, nil
}

const hostTimeout = 2 * time.Second

// Driver returns the driver of the connections.
func (c *Connector) Driver() driver.Driver { return gomysql.MySQLDriver{} }

// Connect returns a connection to the server that can be written.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	if len(c.hosts) == 1 {
		h := c.activate(c.hosts[0])
		conn, err := h.host.connector.Connect(ctx)
		return h.wrap(conn, h.named(err))
	}
	var failed error
	for range 2 { // the former server, and the present one
		h, err := c.locate(ctx)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		conn, _, err := h.open(ctx)
		if err == nil || errors.Is(err, context.Canceled) || sqlstore.DeadlineTooShort(err, start) {
			return h.wrap(conn, err)
		}
		h.end(err)
		failed = err
	}
	return nil, failed
}

// locate returns the server in use, or searches one. The search has its own context: a caller that
// leaves does not disturb the others.
func (c *Connector) locate(ctx context.Context) (*activeHost, error) {
	if h := c.active.Load(); h != nil {
		return h, nil
	}
	search := c.search.DoChan("", func() (any, error) {
		h, err := c.choose()
		if err != nil {
			return nil, err
		}
		c.logger.Info("mysql server chosen", "server", h.addr)
		return c.activate(h), nil
	})
	select {
	case found := <-search:
		if found.Err != nil {
			return nil, found.Err
		}
		return found.Val.(*activeHost), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// choose asks all servers at once and returns the first that can be written.
func (c *Connector) choose() (*host, error) {
	conns := make([]driver.Conn, len(c.hosts))
	states := make([]serverState, len(c.hosts))
	reasons := make([]error, len(c.hosts))
	var wg sync.WaitGroup
	for i, h := range c.hosts {
		wg.Go(func() { conns[i], states[i], reasons[i] = h.open(context.Background()) })
	}
	wg.Wait()
	first := -1
	for i, h := range c.hosts {
		if reasons[i] != nil {
			reasons[i] = fmt.Errorf("%s: %w", h.addr, mysqlconn.Advise(reasons[i], nil))
			continue
		}
		defer conns[i].Close()
		if first < 0 {
			first = i
		} else if err := c.compare(first, i, states); err != nil {
			return nil, err
		}
	}
	if first < 0 {
		return nil, fmt.Errorf("no server in the URL can be written: %w", failures.List(reasons))
	}
	return c.hosts[first], nil
}

// compare reports why two servers that can be written must not be used side by side.
func (c *Connector) compare(i, j int, states []serverState) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.hosts[j].timeout)
	defer cancel()
	fits, err := states[i].with(ctx, states[j])
	if err != nil {
		return fmt.Errorf("compare %s with %s: %v", c.hosts[i].addr, c.hosts[j].addr, err) // no cause: the caller's time is not up
	}
	if !fits {
		return fmt.Errorf("%s and %s can both be written and are not a cluster: set read_only=1 on the one that is not the primary",
			c.hosts[i].addr, c.hosts[j].addr)
	}
	return nil
}

// activate makes h the server in use, unless another one is, and returns the one in use.
func (c *Connector) activate(h *host) *activeHost {
	a := &activeHost{host: h, connector: c}
	for !c.active.CompareAndSwap(nil, a) {
		if current := c.active.Load(); current != nil {
			return current
		}
	}
	return a
}

// open connects to the server and fails if it cannot be written.
func (h *host) open(ctx context.Context) (driver.Conn, serverState, error) {
	limited, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var state serverState
	conn, err := h.connector.Connect(limited)
	if err == nil {
		if state, err = askServer(limited, conn); err != nil {
			_ = conn.Close() // the first error is the one to tell
		}
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v: %v", h.timeout, err) // no cause: the caller's time is not up
	}
	return conn, state, err
}

// end gives the server up for all connections to it.
func (h *activeHost) end(cause error) {
	if h == nil || h.over.Swap(true) {
		return
	}
	h.connector.active.CompareAndSwap(h, nil)
	if len(h.connector.hosts) > 1 {
		h.connector.logger.Warn("mysql server given up: looking for one that can be written", "server", h.addr, "err", cause)
	}
}

// named says which server gave no answer. The driver's ErrBadConn, which it returns
// when it is not greeted, would have database/sql wait for the same greeting again.
func (h *activeHost) named(err error) error {
	switch {
	case h == nil:
		return err
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, gomysql.ErrInvalidConn):
		return fmt.Errorf("%s: %w", h.addr, gomysql.ErrInvalidConn)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", h.addr, err)
	}
	return err
}

// A hostConn is a connection to an activeHost, and ends with it.
type hostConn struct {
	driverConn
	host *activeHost
}

// A driverConn is all that database/sql asks of a connection.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

func (h *activeHost) wrap(conn driver.Conn, err error) (driver.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &hostConn{conn.(driverConn), h}, nil
}

// ResetSession makes database/sql replace a connection to a former server before it sends anything.
func (c *hostConn) ResetSession(ctx context.Context) error {
	if c.host.over.Load() {
		return driver.ErrBadConn
	}
	return c.driverConn.ResetSession(ctx)
}

// IsValid reports whether the connection may go back to the pool.
func (c *hostConn) IsValid() bool { return !c.host.over.Load() && c.driverConn.IsValid() }

// hostOf returns the server of a connection; nil where another connector made it.
func hostOf(conn *sql.Conn) (h *activeHost, err error) {
	err = conn.Raw(func(c any) error {
		if ours, ok := c.(*hostConn); ok {
			h = ours.host
		}
		return nil
	})
	return h, err
}
