package relay_test

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var errNotSet = errors.New("not set yet")

// A late store leads to a server whose address the test learns later.
type late struct {
	mu  sync.Mutex
	db  *relay.DB
	err error // of the latest Advance
}

func (l *late) set(db *relay.DB) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.db = db
}

func (l *late) get() *relay.DB {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.db
}

func (l *late) lastErr() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *late) route() []string {
	if db := l.get(); db != nil {
		return db.Route()
	}
	return nil
}

func (l *late) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	db := l.get()
	if db == nil {
		return segment.Grant{}, errNotSet
	}
	g, err := db.Store().Advance(ctx, tag, n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	return g, err
}

func (l *late) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	if db := l.get(); db != nil {
		return db.Store().Tags(ctx)
	}
	return func(yield func(segment.Tag, error) bool) { yield(order, nil) }
}

type lateRegistry struct{ worker.Registry }
