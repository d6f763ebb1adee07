package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A Connector connects to the one of several MySQL or MariaDB servers that can be
// written; it is for [sql.OpenDB]. All connections go to the same server for as long
// as it answers and can be written. Then all servers are asked at once, and the first
// in the list that can be written is used from there on; the connections to the former
// one are closed as soon as nobody uses them. A call that failed meanwhile is not
// repeated.
//
// A server can be written if it is not read-only; on Galera, if it is ready and part
// of the primary component; with Group Replication, if it is an online member and
// sees a majority. Several servers that can be written must be members of one Galera
// cluster or one group, or be one server under several names: otherwise none is used,
// because each would deal the same ranges. A server that does not answer cannot be
// compared.
//
// With one server it connects as that server's own connector does, and looks at
// nothing.
type Connector struct {
	hosts  []*mysqlHost
	logger *slog.Logger

	mu     sync.Mutex
	stay   *mysqlStay   // nil: no server is known that can be written
	search *mysqlSearch // nil: none is under way
}

// A mysqlHost is a server as it is named.
type mysqlHost struct {
	addr      string
	timeout   time.Duration // to connect
	connector driver.Connector
}

// A mysqlStay is the use of a server from its choice to the first sign that it can no
// longer be written.
type mysqlStay struct {
	host      *mysqlHost
	connector *Connector
	over      atomic.Bool
}

// A mysqlSearch is a look at all servers, which all who wait for a connection share.
type mysqlSearch struct {
	done chan struct{}
	stay *mysqlStay
	err  error
}

// NewConnector returns a connector to servers, configured each as the package
// documentation says. Timeout bounds the whole of connecting to one server; 0 stands
// for two seconds. It fails, wrapping [leaf.ErrInvalid], if a configuration is
// malformed or two have one address.
func NewConnector(servers []*gomysql.Config, opts *Options) (*Connector, error) {
	c := &Connector{logger: opts.logger()}
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
		timeout := cfg.Timeout
		if timeout <= 0 {
			timeout = mysqlHostTimeout
		}
		c.hosts = append(c.hosts, &mysqlHost{addr: cfg.Addr, timeout: timeout, connector: connector})
	}
	if len(c.hosts) == 0 {
		return nil, fmt.Errorf("connect to mysql: %w: no server", leaf.ErrInvalid)
	}
	return c, nil
}

const mysqlHostTimeout = 2 * time.Second

// Driver returns the driver of the connections.
func (c *Connector) Driver() driver.Driver { return gomysql.MySQLDriver{} }

// Connect returns a connection to the server that can be written.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	if len(c.hosts) == 1 {
		stay := c.settle(c.hosts[0])
		conn, err := stay.host.connector.Connect(ctx)
		return stay.wrap(conn, stay.named(err))
	}
	var failed error
	for range 2 { // the server that was good, and the one that is
		stay, err := c.locate(ctx)
		if err != nil {
			return nil, err
		}
		start := time.Now()
		conn, _, err := stay.host.open(ctx)
		if err == nil || errors.Is(err, context.Canceled) || sqlstore.Hurried(err, start) {
			return stay.wrap(conn, err)
		}
		stay.end(err)
		failed = err
	}
	return nil, failed
}

// locate returns the server in use, after a search if there is none.
func (c *Connector) locate(ctx context.Context) (*mysqlStay, error) {
	c.mu.Lock()
	if stay := c.stay; stay != nil {
		c.mu.Unlock()
		return stay, nil
	}
	if c.search == nil {
		c.search = &mysqlSearch{done: make(chan struct{})}
		go c.run(c.search)
	}
	search := c.search
	c.mu.Unlock()
	select {
	case <-search.done:
		return search.stay, search.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run searches on nobody's behalf: a caller that leaves disturbs none of the others.
func (c *Connector) run(search *mysqlSearch) {
	host, err := c.choose()
	if err == nil {
		search.stay = c.settle(host)
		c.logger.Info("mysql server chosen", "server", host.addr)
	}
	search.err = err
	c.mu.Lock()
	c.search = nil
	c.mu.Unlock()
	close(search.done)
}

// choose asks all servers at once and returns the first that can be written.
func (c *Connector) choose() (*mysqlHost, error) {
	conns := make([]driver.Conn, len(c.hosts))
	states := make([]mysqlState, len(c.hosts))
	reasons := make([]error, len(c.hosts))
	var wg sync.WaitGroup
	for i, host := range c.hosts {
		wg.Go(func() { conns[i], states[i], reasons[i] = host.open(context.Background()) })
	}
	wg.Wait()
	first := -1
	for i, host := range c.hosts {
		if reasons[i] != nil {
			reasons[i] = fmt.Errorf("%s: %w", host.addr, adviseMySQL(reasons[i]))
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
		return nil, &mysqlHostsError{reasons}
	}
	return c.hosts[first], nil
}

// compare reports why two servers that can be written must not be used side by side.
func (c *Connector) compare(i, j int, states []mysqlState) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.hosts[j].timeout)
	defer cancel()
	fits, err := states[i].with(ctx, states[j])
	if err != nil {
		return fmt.Errorf("compare %s with %s: %v", c.hosts[i].addr, c.hosts[j].addr, err) // no cause: the caller's time is not up
	}
	if !fits {
		return fmt.Errorf("%s and %s can both be written and are no cluster: set read_only=1 on the one that is no primary",
			c.hosts[i].addr, c.hosts[j].addr)
	}
	return nil
}

// settle makes host the server in use, where it is not.
func (c *Connector) settle(host *mysqlHost) *mysqlStay {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stay == nil {
		c.stay = &mysqlStay{host: host, connector: c}
	}
	return c.stay
}

// open connects to the server and fails if it cannot be written.
func (h *mysqlHost) open(ctx context.Context) (driver.Conn, mysqlState, error) {
	limited, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	var state mysqlState
	conn, err := h.connector.Connect(limited)
	if err == nil {
		if state, err = askMySQL(limited, conn); err != nil {
			_ = conn.Close() // the first error is the one to tell
		}
	}
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %v: %v", h.timeout, err) // no cause: the caller's time is not up
	}
	return conn, state, err
}

// end gives the server up for all connections to it.
func (s *mysqlStay) end(cause error) {
	if s == nil || s.over.Swap(true) {
		return
	}
	c := s.connector
	c.mu.Lock()
	if c.stay == s {
		c.stay = nil
	}
	c.mu.Unlock()
	if len(c.hosts) > 1 {
		c.logger.Warn("mysql server given up: looking for one that can be written", "server", s.host.addr, "err", cause)
	}
}

// named says which server gave no answer. The driver's ErrBadConn, which it returns
// when it is not greeted, would have database/sql wait for the same greeting again.
func (s *mysqlStay) named(err error) error {
	switch {
	case s == nil:
		return err
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, gomysql.ErrInvalidConn):
		return fmt.Errorf("%s: %w", s.host.addr, gomysql.ErrInvalidConn)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", s.host.addr, err)
	}
	return err
}

// failsMySQL reports whether an error says that a server is of no use for others either.
func failsMySQL(err error) bool {
	return errors.Is(err, errReadOnly) || errors.Is(err, errNotReady) || isMySQL(err, mysqlNotReady, mysqlShutdown) ||
		isMySQL(err, mysqlReadOnly...) || errors.Is(err, gomysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded)
}

// A mysqlConn is a connection of a stay, with which it ends.
type mysqlConn struct {
	mysqlDriverConn
	stay *mysqlStay
}

// A mysqlDriverConn is all that database/sql asks of a connection.
type mysqlDriverConn interface {
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

func (s *mysqlStay) wrap(conn driver.Conn, err error) (driver.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &mysqlConn{conn.(mysqlDriverConn), s}, nil
}

// ResetSession has database/sql take another connection in the place of one to a
// server that was given up: nothing was sent on it yet.
func (c *mysqlConn) ResetSession(ctx context.Context) error {
	if c.stay.over.Load() {
		return driver.ErrBadConn
	}
	return c.mysqlDriverConn.ResetSession(ctx)
}

// IsValid reports whether the connection may go back to the pool.
func (c *mysqlConn) IsValid() bool { return !c.stay.over.Load() && c.mysqlDriverConn.IsValid() }

// stayOf returns the stay of a connection; nil where another connector made it.
func stayOf(conn *sql.Conn) (stay *mysqlStay, err error) {
	err = conn.Raw(func(c any) error {
		if m, ok := c.(*mysqlConn); ok {
			stay = m.stay
		}
		return nil
	})
	return stay, err
}

// A mysqlHostsError says for each server why it cannot be written.
type mysqlHostsError struct{ reasons []error }

func (e *mysqlHostsError) Error() string {
	var b strings.Builder
	b.WriteString("no server in the URL can be written: ")
	for i, reason := range e.reasons {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(reason.Error())
	}
	return b.String()
}

func (e *mysqlHostsError) Unwrap() []error { return e.reasons }
