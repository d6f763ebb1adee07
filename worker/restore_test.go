package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

func TestRestored(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	layout := worker.ServedLayout{Name: "leaf", Epoch: 1, Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}
	pool := worker.Pool{Name: "p", Layout: worker.ServedLayout{Epoch: 1, Tick: 1, TimeBits: 41, WorkerBits: 3, SequenceBits: 12}, MaxTTL: 2 * time.Hour}
	const first = int64(1) << 32
	backup := []worker.Record{
		{Worker: 5, Version: "v", Instance: worker.NewInstance(), Term: 3, Horizon: now.Add(-time.Hour), Layouts: []worker.ServedLayout{layout}, Owner: "h"},
		{Worker: 6, Term: 9, Horizon: now.Add(9 * time.Hour)},
		{Worker: first | (1<<32 - 1), Instance: worker.NewInstance(), Term: 1, Horizon: now, Pool: pool},
		{Worker: first | 2, Instance: worker.NewInstance(), Term: 1, Horizon: now.Add(-time.Hour), Floor: now.Add(-2 * time.Hour)},
	}
	restored, wait := worker.Restored(backup, now)
	got := make(map[int64]worker.Record)
	for _, r := range restored {
		got[r.Worker] = r
	}
	for id := range int64(8) { // the pool's worker IDs, all but one without a record in the backup
		if r := got[first|id]; r.Held() || r.Horizon.Before(now.Add(pool.MaxTTL)) {
			t.Errorf("pool worker %d: %+v, want no holder before the longest lease ends", id, r)
		}
	}
	if r := got[5]; r.Held() || r.Horizon.Before(now.Add(pool.MaxTTL)) || len(r.Layouts) != 1 || r.Term <= 3 || r.Version != "" {
		t.Errorf("worker 5: %+v", r)
	}
	if r := got[6]; !r.Horizon.Equal(now.Add(9 * time.Hour)) {
		t.Errorf("worker 6 lost its horizon: %+v", r)
	}
	if r := got[first|(1<<32-1)]; r.Pool != pool || !r.Held() {
		t.Errorf("the pool: %+v", r)
	}
	if len(restored) != 2+1+8 || wait <= time.Minute {
		t.Errorf("%d records, a wait of %v", len(restored), wait)
	}

	pool.Layout.WorkerBits = 20
	backup[2].Pool = pool
	if _, wait := worker.Restored(backup, now); wait <= pool.MaxTTL {
		t.Errorf("a pool too large for a record each: a wait of %v, want its longest lease", wait)
	}
}
