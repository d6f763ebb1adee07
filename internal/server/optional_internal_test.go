package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// An ailing registry is one whose calls fail.
type ailing struct {
	*kv.Registry
	err atomic.Pointer[error]
}

func (a *ailing) List(ctx context.Context) ([]worker.Record, error) {
	if err := a.err.Load(); err != nil {
		return nil, *err
	}
	return a.Registry.List(ctx)
}

func (a *ailing) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	if err := a.err.Load(); err != nil {
		return worker.Record{}, *err
	}
	return a.Registry.Swap(ctx, old, new)
}

// A database without the table of worker IDs goes away. That is no reason for the server to refuse
// IDs from its memory: snowflake, which is only on by default, was off before.
func TestStoreWithoutWorkerIDsAway(t *testing.T) {
	for _, none := range []error{worker.ErrNotCreated, leaf.ErrUnsupported} { // the latter from a server without them
		t.Run(none.Error(), func(t *testing.T) { withoutWorkerIDs(t, none) })
	}
}

func withoutWorkerIDs(t *testing.T, none error) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // after the epoch of the layout
		registry := &ailing{Registry: memory.New().Registry()}
		node, err := snowflake.NewNode(registry, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := &Server{times: &times{node: node, workers: issuer.NewWorkers(registry, node.Keeper(), nil), implicit: true}}
		look := func(what string, err error, optional bool) {
			t.Helper()
			if registry.err.Store(&err); err == nil {
				registry.err.Store(nil)
			}
			time.Sleep(time.Hour)
			if f := s.leaseFacts(); f.Optional != optional || !errors.Is(f.Err, err) {
				t.Errorf("%s: optional %v, want %v; %v", what, f.Optional, optional, f.Err)
			}
		}
		down := errors.New("connection refused")
		registry.err.Store(&down)
		node.Start()
		defer node.Close(t.Context())
		look("not known yet", down, false)
		look("not there", none, true)
		look("not there, and away", down, true)
		look("created", nil, false)
		look("dropped", none, false)
	})
}
