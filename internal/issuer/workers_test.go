package issuer_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/worker"
)

// A keeper holds worker 1.
type keeper struct{ err error }

func (k *keeper) Status() worker.Status {
	return worker.Status{Held: k.err == nil, Worker: 1, Err: k.err}
}
func (k *keeper) Err() error { return k.err }

// registry returns a registry in which another node holds workers 0 and 1 for an hour.
const pooled = 1 << 32 // the first worker ID of the first pool

func registry(t *testing.T) *kv.Registry {
	t.Helper()
	r := memory.New().Registry()
	for _, id := range []int64{0, 1, pooled} {
		record := worker.Record{Worker: id, Instance: worker.NewInstance(), Term: 6, Horizon: time.Now().Add(time.Hour).Truncate(time.Millisecond)}
		if _, err := r.Swap(t.Context(), worker.Record{Worker: id}, record); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestFree(t *testing.T) {
	tests := map[string]struct {
		worker int64
		keeper issuer.Keeper
		want   error
	}{
		"another's":         {0, &keeper{}, nil},
		"the own":           {1, &keeper{}, issuer.ErrHeld},
		"once the own":      {1, &keeper{err: leaf.ErrNoLease}, nil},
		"without a keeper":  {1, nil, nil},
		"one never claimed": {2, &keeper{}, leaf.ErrInvalid},
		"a negative one":    {-1, &keeper{}, leaf.ErrInvalid},
		"one of a pool":     {pooled, &keeper{}, leaf.ErrInvalid},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := registry(t)
			log := new(bytes.Buffer)
			w := issuer.NewWorkers(r, tt.keeper, slog.New(slog.NewTextHandler(log, nil)))
			got, err := w.Free(t.Context(), tt.worker)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("Free: %v, want %v", err, tt.want)
			}
			if logged := strings.Count(log.String(), "worker ID freed"); logged != map[bool]int{true: 1}[err == nil] {
				t.Errorf("log: %q", log)
			}
			list, listErr := w.List(t.Context())
			if listErr != nil || len(list) != 2 {
				t.Fatalf("List: %v, %v", list, listErr)
			}
			for _, record := range list {
				freed := err == nil && record.Worker == tt.worker
				if record.Held() == freed || freed && (record.Term != 7 || !record.Equal(got)) {
					t.Errorf("worker %d: %+v after %v", record.Worker, record, err)
				}
			}
		})
	}
}

func TestWorkersWithoutKeeper(t *testing.T) {
	w := issuer.NewWorkers(registry(t), nil, nil)
	if !errors.Is(w.Err(), leaf.ErrNoLease) || w.Status().Held || w.Mine(0) {
		t.Errorf("%v, %+v", w.Err(), w.Status())
	}
}
