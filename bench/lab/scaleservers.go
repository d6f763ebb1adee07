package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A storeFleet is many servers as their store meets them: the tags in use and the lease of each, in
// one process, over the connections of one pool.
type storeFleet struct {
	store   *testserver.PostgresServer
	db      *sql.DB
	sent    statementCount
	servers []*storeServer
}

// A statementCount counts the statements that a client library sends.
type statementCount struct{ atomic.Int64 }

// TraceQueryStart counts.
func (c *statementCount) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.Add(1)
	return ctx
}

// TraceQueryEnd does nothing.
func (c *statementCount) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

type storeServer struct {
	db     *sqldb.DB
	set    *segment.Set
	keeper *worker.Keeper
	cancel context.CancelFunc
	ended  chan error // the result of the keeper
}

const (
	poolConns  = 64
	fleetTags  = 1000
	serverTags = 10 // that each server has used
)

// manyServers measures the load on a PostgreSQL of servers that do nothing, and of all restarting at
// once.
func manyServers(ctx context.Context, l *lab, t *strings.Builder, found map[string]result) error {
	t.WriteString("\n| servers on a PostgreSQL | statements a second, idle | its CPU, % of a core, idle | restart of all, s | statements for it | its CPU, s |\n|---|---|---|---|---|---|\n")
	for _, n := range []int{l.scaled(scaleServers / 10), l.scaled(scaleServers)} {
		f, err := newStoreFleet(ctx)
		if err == nil {
			err = errors.Join(f.measure(ctx, n, t, found), f.stop())
		}
		if f.close(); err != nil {
			return fmt.Errorf("%d servers: %w", n, err)
		}
	}
	return nil
}

func newStoreFleet(ctx context.Context) (*storeFleet, error) {
	f := &storeFleet{}
	var err error
	if f.store, err = testserver.StartPostgres(nil); err != nil {
		return f, err
	}
	cfg, err := pgx.ParseConfig(f.store.URL("postgres"))
	if err != nil {
		return f, err
	}
	cfg.Tracer = &f.sent
	f.db = sql.OpenDB(postgres.NewConnector(cfg))
	f.db.SetMaxOpenConns(poolConns)
	f.db.SetMaxIdleConns(poolConns)
	tags := make([]segment.Tag, fleetTags)
	for i := range tags {
		tags[i] = segment.Tag{Name: tagName(i), MaxID: 1, Step: 1000}
	}
	db, err := postgres.New(f.db, nil)
	if err != nil {
		return f, err
	}
	return f, errors.Join(db.Init(ctx, tags), db.InitRegistry(ctx), db.Close())
}

func (f *storeFleet) close() {
	if f.db != nil {
		_ = f.db.Close() // the server ends next
	}
	if f.store != nil {
		f.store.Close()
	}
}

func (f *storeFleet) measure(ctx context.Context, n int, t *strings.Builder, found map[string]result) error {
	if err := f.start(ctx, n); err != nil {
		return err
	}
	if err := f.stop(); err != nil {
		return err
	}
	restart, err := f.during(func() error { return f.start(ctx, n) })
	if err != nil {
		return err
	}
	time.Sleep(15 * time.Second) // what follows a start
	// Two comparisons of the tags, six extensions of the lease.
	idle, err := f.during(func() error { time.Sleep(time.Minute); return nil })
	if err != nil {
		return err
	}
	rate := idle.statements / idle.seconds
	fmt.Fprintf(t, "| %d | %s | %s | %s | %s | %s |\n", n, short(rate), short(100*idle.cpu/idle.seconds),
		short(restart.seconds), short(restart.statements), short(restart.cpu))
	found["scale-idle"], found["scale-restart"] = result{figure: figure{rate}}, result{figure: figure{restart.seconds}}
	return nil
}

// A storeLoad is the work of the store in a time.
type storeLoad struct{ seconds, statements, cpu float64 }

// during returns the work of the store while do runs.
func (f *storeFleet) during(do func() error) (l storeLoad, err error) {
	cpu, err := bench.TreeSeconds(f.store.PID())
	if err != nil {
		return l, err
	}
	began, sent := time.Now(), f.sent.Load()
	if err := do(); err != nil {
		return l, err
	}
	l.seconds, l.statements = time.Since(began).Seconds(), float64(f.sent.Load()-sent)
	l.cpu, err = bench.TreeSeconds(f.store.PID())
	l.cpu -= cpu
	return l, err
}

// start starts n servers at once, and returns when each has an ID of all of its tags and a worker ID.
func (f *storeFleet) start(ctx context.Context, n int) error {
	var all errgroup.Group
	f.servers = make([]*storeServer, n)
	for i := range f.servers {
		all.Go(func() (err error) {
			f.servers[i], err = f.startServer(ctx, i)
			return err
		})
	}
	return all.Wait()
}

func (f *storeFleet) startServer(ctx context.Context, i int) (*storeServer, error) {
	db, err := postgres.New(f.db, nil)
	if err != nil {
		return nil, err
	}
	s := &storeServer{db: db, ended: make(chan error, 1)}
	s.keeper, err = worker.NewKeeper(db.Registry(), &worker.Options{RegistryKey: "bench", Owner: fmt.Sprint("server-", i)})
	if err != nil {
		return nil, err
	}
	var running context.Context
	running, s.cancel = context.WithCancel(ctx)
	go func() { s.ended <- s.keeper.Run(running) }()
	s.set = segment.NewSet(db.Store(), &segment.SetOptions{Options: segment.Options{Wait: time.Minute}})
	for j := range serverTags {
		if _, err := s.set.Next(ctx, tagName((i*serverTags+j)%fleetTags)); err != nil {
			return s, err
		}
	}
	deadline := time.Now().Add(5 * time.Minute)
	for s.keeper.Err() != nil {
		if time.Now().After(deadline) {
			return s, fmt.Errorf("server %d has no worker ID: %w", i, s.keeper.Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return s, nil
}

// stop stops all servers at once, in good order.
func (f *storeFleet) stop() error {
	var all sync.WaitGroup
	errs := make([]error, len(f.servers))
	for i, s := range f.servers {
		if s == nil {
			continue
		}
		all.Go(func() {
			s.cancel()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = s.set.Close(ctx) // the servers share tags, so most of their rest cannot go back
			errs[i] = errors.Join(<-s.ended, s.db.Close())
		})
	}
	all.Wait()
	f.servers = nil
	return errors.Join(errs...)
}
