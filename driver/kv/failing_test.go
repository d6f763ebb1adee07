package kv_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var errBroken = errors.New("the connection is broken")

// A breaking backend fails its nth call, counted from 0. A failed swap may have written or not.
type breaking struct {
	*memory.Backend
	calls, nth int
	writes     bool

	strict, prepared bool // of a complete backend: cells come after Prepare
}

func (b *breaking) fails() bool {
	b.calls++
	return b.calls-1 == b.nth
}

func (b *breaking) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	if b.fails() {
		return kv.Cell{}, errBroken
	}
	return b.Backend.Get(ctx, key)
}

func (b *breaking) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	if b.fails() {
		if b.writes {
			_, _ = b.Backend.Swap(ctx, old, value)
		}
		return kv.Cell{}, errBroken
	}
	return b.Backend.Swap(ctx, old, value)
}

func (b *breaking) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	if b.fails() {
		return func(yield func(kv.Cell, error) bool) { yield(kv.Cell{}, errBroken) }
	}
	return b.Backend.List(ctx, kind)
}

func (b *breaking) Clock(ctx context.Context) (time.Time, error) {
	if b.fails() {
		return time.Time{}, errBroken
	}
	return b.Backend.Clock(ctx)
}

func (b *breaking) Watch(ctx context.Context, key kv.Key) (<-chan struct{}, error) {
	if b.fails() {
		return nil, errBroken
	}
	return b.Backend.Watch(ctx, key)
}

// A kvCall is one call to a DB.
type kvCall func(ctx context.Context, db *kv.DB) error

var (
	setUp = map[string]kvCall{
		"Init":         func(ctx context.Context, db *kv.DB) error { return db.Init(ctx, []segment.Tag{order}) },
		"InitRegistry": func(ctx context.Context, db *kv.DB) error { return db.InitRegistry(ctx) },
	}
	inUse = map[string]kvCall{
		"Advance": func(ctx context.Context, db *kv.DB) error { _, err := db.Store().Advance(ctx, "order", 5); return err },
		"Return": func(ctx context.Context, db *kv.DB) error {
			grant, err := db.Store().Advance(ctx, "order", 5)
			if err == nil {
				err = db.Store().Return(ctx, "order", grant, grant.Range.Start+1)
			}
			return err
		},
		"Create": func(ctx context.Context, db *kv.DB) error {
			return db.Store().Create(ctx, segment.Tag{Name: "user", Step: 7})
		},
		"Alter": func(ctx context.Context, db *kv.DB) error {
			_, err := db.Store().Alter(ctx, "order", segment.Change{Step: new(int64(99))})
			return err
		},
		"Delete": func(ctx context.Context, db *kv.DB) error { return db.Store().Delete(ctx, "order") },
		"Tags": func(ctx context.Context, db *kv.DB) error {
			for tag, err := range db.Store().Tags(ctx) {
				if err != nil || tag.Name != "order" {
					return err
				}
			}
			return nil
		},
		"Exists":          func(ctx context.Context, db *kv.DB) error { return wantTrue(db.Store().Exists(ctx)) },
		"registry Exists": func(ctx context.Context, db *kv.DB) error { return wantTrue(db.Registry().Exists(ctx)) },
		"Identities": func(ctx context.Context, db *kv.DB) error {
			known, err := db.Identities(ctx)
			if err == nil && (known["store"] == "" || known["registry of worker IDs"] == "") {
				err = fmt.Errorf("identities: %v", known)
			}
			return err
		},
		"Load": func(ctx context.Context, db *kv.DB) error { _, err := db.Registry().Load(ctx, 7); return err },
		"Swap": func(ctx context.Context, db *kv.DB) error {
			_, err := db.Registry().Swap(ctx, worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1})
			return err
		},
		"registry List": func(ctx context.Context, db *kv.DB) error { _, err := db.Registry().List(ctx); return err },
		"Clock":         func(ctx context.Context, db *kv.DB) error { _, err := db.Registry().Clock(ctx); return err },
		"Watch":         func(ctx context.Context, db *kv.DB) error { _, err := db.Registry().Watch(ctx, 7); return err },
	}
)

func wantTrue(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("it does not exist")
	}
	return err
}

// No call succeeds if a call that it makes fails, and a Swap of unknown outcome is no conflict.
func TestFailuresAreTold(t *testing.T) {
	for name, call := range inUse {
		for _, writes := range []bool{false, true} {
			failEach(t, name, call, writes, func(t *testing.T, cells *memory.Backend) {
				newStore(t, cells, order)
				if err := open(t, cells).InitRegistry(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
	for name, call := range setUp {
		failEach(t, name, call, false, func(*testing.T, *memory.Backend) {})
	}
}

// failEach fails each call to the backend that a call to a DB makes, in turn.
func failEach(t *testing.T, name string, call kvCall, writes bool, prepare func(*testing.T, *memory.Backend)) {
	t.Helper()
	failEachOf(t, name, call, writes, func(b *breaking) kv.Backend { return b }, prepare)
}

// failEachOf is failEach over a backend with more parts.
func failEachOf(t *testing.T, name string, call kvCall, writes bool, of func(*breaking) kv.Backend, prepare func(*testing.T, *memory.Backend)) {
	t.Helper()
	for nth := 0; ; nth++ {
		cells := memory.NewBackend()
		prepare(t, cells)
		b := &breaking{Backend: cells, nth: nth, writes: writes}
		err := call(t.Context(), open(t, of(b)))
		if b.calls <= nth { // it makes no more
			if err != nil || nth == 0 {
				t.Errorf("%s after %d calls: %v", name, nth, err)
			}
			return
		}
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: the call number %d failed, and it brought: %v", name, nth, err)
		}
	}
}

// A cell that no release wrote is an error that says what to do, for the store and the registry.
func TestForeignMarker(t *testing.T) {
	for _, text := range []string{"mine", `{"v":0}`, `{}`, "[]", `{"v":1,"store":5}`} {
		cells := memory.NewBackend()
		for _, name := range []string{"tags", "workers"} {
			if _, err := cells.Swap(t.Context(), kv.Cell{Key: kv.Key{Kind: kv.Format, Name: name}}, text); err != nil {
				t.Fatal(err)
			}
		}
		for name, call := range inUse {
			if strings.Contains(name, "Exists") || name == "Identities" || name == "Clock" {
				continue
			}
			err := call(t.Context(), open(t, cells))
			if !errors.Is(err, leaf.ErrUnsupported) || !strings.Contains(err.Error(), "choose another prefix") {
				t.Errorf("%s with a marker %s: %v", name, text, err)
			}
		}
	}
}

// All calls of a closed DB fail so, and a second Close does nothing.
func TestClosedDB(t *testing.T) {
	cells := memory.NewBackend()
	newStore(t, cells, order)
	db := open(t, cells)
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Error(err)
	}
	for name, call := range inUse {
		if strings.Contains(name, "Exists") || name == "Identities" {
			continue
		}
		if err := call(t.Context(), db); !errors.Is(err, leaf.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
