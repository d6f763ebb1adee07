package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// TestRegistryInit creates a registry in an empty database, next to a store.
func (d Driver) TestRegistryInit(t *testing.T, db *sql.DB) {
	ctx := t.Context()
	for _, create := range []func() error{
		func() error { return nil },
		func() error { return d.Init(ctx, db, nil) },
	} {
		if err := create(); err != nil {
			t.Fatal(err)
		}
		if exists, err := d.ExistsRegistry(ctx, db); exists || err != nil {
			t.Errorf("exists before init: %v, %v", exists, err)
		}
		WantNotCreated(t, d.OpenRegistry(t, db, nil))
	}
	if err := d.InitRegistry(ctx, db); err != nil {
		t.Fatal(err)
	}
	if exists, err := d.ExistsRegistry(ctx, db); !exists || err != nil {
		t.Errorf("exists after init: %v, %v", exists, err)
	}
	if err := d.InitRegistry(ctx, db); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "leaf_worker") {
		t.Errorf("second init: %v, want fs.ErrExist", err)
	}
	if err := SwapError(t, d.OpenRegistry(t, db, nil)); err != nil {
		t.Error(err)
	}
}

// WantNotCreated checks that each call reports a missing registry.
func WantNotCreated(t *testing.T, r worker.Registry) {
	t.Helper()
	_, listErr := r.List(t.Context())
	for _, err := range []error{LoadError(t, r), listErr, SwapError(t, r)} {
		if !errors.Is(err, worker.ErrNotCreated) {
			t.Errorf("error %v, want worker.ErrNotCreated", err)
		}
	}
}

// SwapError is the outcome of a swap that fills the cell of worker 7.
func SwapError(t *testing.T, r worker.Registry) error {
	_, err := r.Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1})
	return err
}

// LoadError is the outcome of a load of worker 7.
func LoadError(t *testing.T, r worker.Registry) error {
	_, err := r.Load(t.Context(), 7)
	return err
}

// WantError checks that each error has the wanted text.
func WantError(t *testing.T, want string, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// WantForgetful checks whether a registry may lose writes.
func WantForgetful(t *testing.T, r worker.LossyRegistry, want bool) {
	t.Helper()
	if got, err := r.ServerEpoch(t.Context()); got.Lossy != want || err != nil {
		t.Errorf("epoch: %+v, %v, want lossy %v", got, err, want)
	}
}

// TestClock checks that a registry's clock, of a server on this machine, tells the time.
func TestClock(t *testing.T, r worker.Registry) {
	t.Helper()
	if err := LoadError(t, r); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	now, err := r.Clock(t.Context())
	if err != nil || now.Before(before.Add(-time.Millisecond)) || now.After(time.Now().Add(time.Millisecond)) {
		t.Errorf("clock %v, %v, want about %v", now, err, before)
	}
}

// OtherText is a record in a handmade format.
const OtherText = ` { "horizon": 1790000000000, "term": 3, "v": 1, "instance": "000102030405060708090a0b0c0d0e0f" } `

// TestOtherText checks that [OtherText] in the cell of worker 7 is replaced like any other record.
func TestOtherText(t *testing.T, r worker.Registry) {
	old, err := r.Load(t.Context(), 7)
	if err != nil || old.Term != 3 {
		t.Fatalf("%+v, %v", old, err)
	}
	next := old
	next.Term++
	if _, err := r.Swap(t.Context(), old, next); err != nil {
		t.Error(err)
	}
	if got, err := r.Load(t.Context(), 7); err != nil || !got.Equal(next) {
		t.Errorf("%+v, %v, want %+v", got, err, next)
	}
}

// CountUp raises the term of worker 7 by one, and returns 0 if that failed or may have failed.
func CountUp(ctx context.Context, r worker.Registry) (int64, error) {
	old, err := r.Load(ctx, 7)
	if err != nil {
		return 0, err
	}
	next := worker.Record{Worker: 7, Instance: worker.NewInstance(), Term: old.Term + 1}
	if _, err := r.Swap(ctx, old, next); err != nil {
		return 0, err
	}
	return next.Term, nil
}

// Terms collects which terms were won. It is safe for concurrent use.
type Terms struct {
	mu   sync.Mutex
	won  map[int64]bool
	last int64
}

// Add notes that a term was won, which happens once.
func (w *Terms) Add(t *testing.T, term int64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.won == nil {
		w.won = make(map[int64]bool)
	}
	if w.won[term] {
		t.Errorf("term %d was won twice", term)
	}
	w.won[term] = true
	w.last = max(w.last, term)
}

// Count returns how many terms were won.
func (w *Terms) Count() int { return len(w.won) }
