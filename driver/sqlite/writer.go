package sqlite

import (
	"context"
	"database/sql"
	"runtime"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/worker"
)

// maxBatch bounds the calls of one transaction, and with them its time.
const maxBatch = 256

// A writer runs the calls of all goroutines, those that wait together in one
// transaction, on the one connection that it owns.
type writer struct {
	sqldb.Options
	db    *sql.DB
	table table
	calls chan *call    // unbuffered: the writer answers each received call
	quit  chan struct{} // closed by Close
	done  chan struct{} // closed when run has returned, or never will run
	start sync.Once     // of run, at the first call
	stop  sync.Once

	// Owned by run.
	session *session // nil before the first use and after a failure
	failure string   // the logged error of the last batch
}

// A call is one caller's work in a batch.
type call struct {
	ctx    context.Context
	run    func(*session) error
	answer chan error // holds one: the writer never waits for a caller that left
}

func newWriter(db *sql.DB, t table, opts sqldb.Options) *writer {
	db.SetMaxIdleConns(0)
	return &writer{Options: opts, db: db, table: t, calls: make(chan *call), quit: make(chan struct{}), done: make(chan struct{})}
}

// Do runs do within some transaction and returns after its commit or failure.
func (w *writer) Do(ctx context.Context, do func(*sqlstore.Session) error) error {
	return w.do(ctx, func(s *session) error { return do(&s.Session) })
}

// Transact is Do for several statements: a refused call has changed nothing, though it may have
// written before.
func (w *writer) Transact(ctx context.Context, do func(*sqlstore.Session) error) error {
	return w.do(ctx, func(s *session) error { return s.nested(do) })
}

// Explain says what to do about an error of SQLite.
func (w *writer) Explain(err error) error { return explain(err, w.File, w.table) }

// ServerEpoch reports a lossless registry: synced writes stay.
func (w *writer) ServerEpoch(context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{}, nil
}

// do executes run within some transaction and returns after its commit or failure. If ctx ends
// first, run may still execute, also later: its variables are then the writer's alone.
func (w *writer) do(ctx context.Context, run func(*session) error) error {
	w.start.Do(func() { go w.run() })
	c := &call{ctx: ctx, run: run, answer: make(chan error, 1)}
	select {
	case w.calls <- c:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.quit:
		return leaf.ErrClosed
	}
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for the present batch, and then gives up the connection.
func (w *writer) Close() {
	w.stop.Do(func() { close(w.quit) })
	w.start.Do(func() { close(w.done) })
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	defer w.drop()
	batch := make([]*call, 0, maxBatch)
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			w.checkFile()
		case c := <-w.calls:
			batch = w.collect(append(batch[:0], c))
			w.serve(batch)
			clear(batch)
		case <-w.quit:
			return
		}
	}
}

// checkInterval is the longest time until an idle writer notices an unfit file. Until then it keeps
// others from opening the file in another way.
const checkInterval = time.Second

// checkFile gives up a session whose file must not be used.
func (w *writer) checkFile() {
	if w.session == nil {
		return
	}
	if err := w.session.file.check(); err != nil {
		w.report(err)
		w.drop()
	}
}

// collect adds the waiting calls to batch. It lets other goroutines run first: callers with a fresh
// answer are about to call again, and a larger batch shares the price of one commit.
func (w *writer) collect(batch []*call) []*call {
	runtime.Gosched()
	for len(batch) < maxBatch {
		select {
		case c := <-w.calls:
			batch = append(batch, c)
		default:
			return batch
		}
	}
	return batch
}

// serve answers each call of batch, after the commit.
func (w *writer) serve(batch []*call) {
	answers := make([]error, len(batch))
	err := w.commit(batch, answers)
	if err != nil || w.failure == "" || w.session.wrote() { // else it reads, and may not be able to write yet
		w.report(err)
	}
	if err != nil {
		w.drop()
	}
	for i, c := range batch {
		if err != nil {
			answers[i] = err
		}
		c.answer <- answers[i]
	}
}

// report logs how a batch went if it went otherwise than the last one: a store that
// stays broken is tried again and again.
func (w *writer) report(err error) {
	failure := ""
	if err != nil {
		err = w.Explain(err)
		failure = err.Error()
	}
	switch {
	case failure == w.failure:
		return
	case err != nil:
		w.Logger.Warn("sqlite transaction failed", "file", w.path(), "err", err)
	default:
		w.Logger.Info("sqlite "+w.table.Use+" works again", "file", w.path())
	}
	w.failure = failure
}

// path is the file's for the log, as far as it is known.
func (w *writer) path() string {
	if w.session != nil {
		return w.session.file.path
	}
	return w.File
}

func (w *writer) commit(batch []*call, answers []error) error {
	if w.session == nil {
		s, err := openSession(w.db, w.File, w.table)
		if err != nil {
			return err
		}
		w.session = s
	}
	return w.session.transact(batch, answers)
}

func (w *writer) drop() {
	if w.session != nil {
		w.session.drop()
		w.session = nil
	}
}
