package etcd_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// transactions returns how many a member was sent, reads among them.
func transactions(t testing.TB, c *testserver.EtcdCluster) float64 {
	t.Helper()
	n, err := c.Metric(0, `grpc_server_started_total{grpc_method="Txn"`)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Processes that want one counter at once do not keep each other from it: the number
// of transactions for one allocation is bounded.
func TestContention(t *testing.T) {
	tests := []struct {
		clients, callers, each int
		most                   float64 // transactions per allocation
	}{
		{clients: 1, callers: 1, each: 200, most: 1.1},
		{clients: 1, callers: 32, each: 50, most: 0.6},
		{clients: 4, callers: 32, each: 20, most: 1},
		{clients: 4, callers: 1, each: 50, most: 3.4}, // without the spread it is 3.6
		{clients: 32, callers: 1, each: 10, most: 12}, // without the spread it is 18
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%d clients of %d", tt.clients, tt.callers), func(t *testing.T) {
			open := newStore(t, shared, newOptions(), order)
			stores := make([]*kv.Store, tt.clients)
			for i := range stores {
				stores[i] = open(t)
			}
			before, began := transactions(t, shared), time.Now()
			var got drivertest.Ranges
			var wg sync.WaitGroup
			for _, s := range stores {
				for range tt.callers {
					wg.Go(func() { advance(t, s, &got, tt.each) })
				}
			}
			wg.Wait()
			n := float64(tt.clients * tt.callers * tt.each)
			per := (transactions(t, shared) - before) / n
			t.Logf("%.2f transactions per allocation, %.0f allocations/s", per, n/time.Since(began).Seconds())
			if per > tt.most {
				t.Errorf("%.2f transactions per allocation, want at most %v", per, tt.most)
			}
			if err := got.CheckExactly(leaf.Range{Start: 1, End: 1 + got.Count()}); err != nil {
				t.Error(err)
			}
		})
	}
}

// Processes that constantly want one counter each get a share of it.
func TestShare(t *testing.T) {
	open := newStore(t, shared, newOptions(), order)
	ctx := within(t, 2*time.Second)
	var wg sync.WaitGroup
	var shares [3]atomic.Int64
	for i := range shares {
		s := open(t)
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := s.Advance(ctx, "order", 10); err == nil {
						shares[i].Add(1)
					} else if ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	a, b, c := shares[0].Load(), shares[1].Load(), shares[2].Load()
	t.Logf("allocations: %d, %d and %d", a, b, c)
	if min(a, b, c) < (a+b+c)/50 {
		t.Errorf("of %d allocations one process got %d", a+b+c, min(a, b, c))
	}
}

// advance makes so many allocations. On a busy machine a call may run out of time, and is
// made again, as a caller who wants IDs does.
func advance(t testing.TB, s *kv.Store, got *drivertest.Ranges, times int) {
	failed := 0
	for times > 0 {
		grant, err := s.Advance(t.Context(), "order", 10)
		if err == nil {
			got.Add(grant.Range)
			times--
			continue
		}
		if failed++; failed > 5 {
			t.Error(err)
			return
		}
		t.Log(err)
	}
}

// BenchmarkAdvance measures allocations by one process, whose callers want one tag or
// have one each.
func BenchmarkAdvance(b *testing.B) {
	for _, callers := range []int{1, 8, 32} {
		for _, own := range []bool{false, true} {
			if callers == 1 && own {
				continue
			}
			b.Run(fmt.Sprintf("callers=%d/own=%v", callers, own), func(b *testing.B) { benchmark(b, callers, own) })
		}
	}
}

func benchmark(b *testing.B, callers int, own bool) {
	var tags []segment.Tag
	for i := range callers {
		tags = append(tags, segment.Tag{Name: fmt.Sprintf("tag-%d", i), Step: 1000})
	}
	s := newStore(b, shared, newOptions(), tags...)(b)
	work := make(chan struct{})
	var wg sync.WaitGroup
	for i := range callers {
		name := tags[0].Name
		if own {
			name = tags[i].Name
		}
		wg.Go(func() {
			for range work {
				if _, err := s.Advance(context.Background(), name, 0); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ResetTimer()
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "allocations/s")
}
