package telemetry

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRequests(nil)
		rec := r.Recorder(maxRecorders + 3)
		if rec != &r.recorders[3] {
			t.Error("another recorder")
		}
		for _, took := range []time.Duration{0, 10 * time.Microsecond, 10*time.Microsecond + 1, 10 * time.Second, time.Minute} {
			arrived := rec.Now()
			time.Sleep(took)
			rec.Done(arrived, 2)
		}
		rec.Done(rec.Now(), 0) // nothing had arrived
		for i := range rec.buckets {
			want := map[int]int64{0: 4, 1: 2, len(bounds) - 1: 2, len(bounds): 2}[i]
			if n := rec.buckets[i].Load(); n != want {
				t.Errorf("bucket %d: %d, want %d", i, n, want)
			}
		}
		if sum, want := time.Duration(rec.sum.Load()), 2*(70*time.Second+20*time.Microsecond+1); sum != want {
			t.Errorf("sum %v, want %v", sum, want)
		}
	})
}

// Many requests at a time take more than 292 years together, which an int64 has in nanoseconds.
func TestLongSum(t *testing.T) {
	r := NewRequests(nil)
	before := r.took()
	for i := range uint(maxRecorders) {
		r.Recorder(i).took(24*time.Hour, 100_000)
	}
	for range 2 { // the second time nothing was added
		if got, want := r.took()-before, 86_400*100_000.0*maxRecorders; got != want {
			t.Errorf("%v s, want %v", got, want)
		}
	}
}

func TestFailed(t *testing.T) {
	r := NewRequests([]string{"A", "B"})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				r.Failed("B")
			}
		})
	}
	all.Wait()
	r.Failed("C")
	if a, b, other := r.causes["A"].Load(), r.causes["B"].Load(), r.unknown.Load(); a != 0 || b != 400 || other != 1 {
		t.Errorf("A %d, B %d, others %d", a, b, other)
	}
}

// Connections to one server differ in the ends of their addresses.
func TestRecorderOf(t *testing.T) {
	r := NewRequests(nil)
	seen := make(map[*Recorder]bool)
	for _, addr := range []string{"127.0.0.1:40000", "127.0.0.1:40001", "127.0.0.1:40019", "", "@"} {
		seen[r.RecorderOf(addr)] = true
	}
	if len(seen) < 4 {
		t.Errorf("%d recorders", len(seen))
	}
}

func TestNilCountsNothing(t *testing.T) {
	var none *FrontEnds
	rec := none.Of("resp").Recorder(1)
	rec.Done(rec.Now(), 1)
	none.Of("http").RecorderOf("127.0.0.1:1").Done(0, 1)
	none.Of("v1").Failed("A")
}

func TestRecordingAllocatesNothing(t *testing.T) {
	r := NewRequests(nil)
	if n := testing.AllocsPerRun(100, func() {
		rec := r.RecorderOf("127.0.0.1:40000")
		rec.Done(rec.Now(), 1)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := NewRequests(nil)
	var next uint
	var mu sync.Mutex
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		mu.Lock()
		next++
		rec := r.Recorder(next)
		mu.Unlock()
		for pb.Next() {
			rec.Done(rec.Now(), 1)
		}
	})
}
