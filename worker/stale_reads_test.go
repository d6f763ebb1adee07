package worker_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/worker"
)

// A laggingRegistry reads as a proxy does that sends reads to a replica.
type laggingRegistry struct {
	*kv.Registry
	lag atomic.Int64 // nanoseconds

	mu      sync.Mutex
	written []version
}

// A version is the content of the replica from a time on.
type version struct {
	at      time.Time
	records []worker.Record
}

func (r *laggingRegistry) List(context.Context) (records []worker.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.written {
		if time.Since(v.at) >= time.Duration(r.lag.Load()) {
			records = v.records
		}
	}
	return records, nil
}

func (r *laggingRegistry) Load(ctx context.Context, id int64) (worker.Record, error) {
	records, err := r.List(ctx)
	for _, found := range records {
		if found.Worker == id {
			return found, err
		}
	}
	return worker.Record{Worker: id}, err
}

func (r *laggingRegistry) Swap(ctx context.Context, old, next worker.Record) (worker.Record, error) {
	now, err := r.Registry.Swap(ctx, old, next)
	if err == nil {
		records, _ := r.Registry.List(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.written = append(r.written, version{time.Now(), records})
	}
	return now, err
}

// A server whose reads lag behind its writes uses up one worker ID, not all of them, and says why
// it issues nothing. It continues once the reads are right.
func TestStaleReadsCostOneWorkerID(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		reg := &laggingRegistry{Registry: w.reg.Registry}
		reg.lag.Store(int64(time.Minute))
		opts := w.opts
		opts.Layouts = []worker.ServedLayout{{Name: "leaf", Tick: 1, TimeBits: 41, WorkerBits: 5, SequenceBits: 12}}
		opts.Horizon = 30 * time.Minute
		k, err := worker.NewKeeper(reg, &opts)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		time.Sleep(50 * time.Second)
		if records, _ := w.reg.List(t.Context()); len(records) != 1 {
			t.Errorf("%d worker IDs were claimed, want 1", len(records))
		}
		if err := k.Err(); !errors.Is(err, worker.ErrStaleReads) {
			t.Errorf("got %v, want worker.ErrStaleReads", err)
		}
		reg.lag.Store(0)
		time.Sleep(10 * time.Second)
		if st := k.Status(); !st.Held || st.Worker != 0 {
			t.Errorf("with reads that see writes: %+v, %v", st, k.Err())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
