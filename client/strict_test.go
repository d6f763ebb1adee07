package client_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

// TestStrictOrder has clients of two servers, and of a relay behind them, take IDs of a tag with strict
// order while the servers stop and start: no call gets an ID below that of a call that ended before.
func TestStrictOrder(t *testing.T) {
	store := memory.New().Store()
	tag := segment.Tag{Name: "order", MaxID: 1, Step: 1000, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	if err := store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	a, b := testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})
	upstream, err := relay.Open([]string{a.URL(), b.URL()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	edge := testleaf.Start(t, testleaf.Options{Store: upstream.Store()})
	type call struct {
		began, ended int64
		leaf.Range
	}
	var clock, failed atomic.Int64
	var mu sync.Mutex
	var calls []call
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, servers := range [][]*testleaf.Server{{a}, {b}, {a, b}, {edge}} {
		c := connect(t, &client.Options{}, servers...)
		for n := range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					c1 := call{began: clock.Add(1)}
					ranges, err := c.Take(t.Context(), "order", nil, n+1)
					if err != nil {
						failed.Add(1)
						time.Sleep(time.Millisecond) // a dead server answers at once
						continue
					}
					c1.Range, c1.ended = ranges[0], clock.Add(1)
					mu.Lock()
					calls = append(calls, c1)
					mu.Unlock()
				}
			})
		}
	}
	enough := func(more int) {
		t.Helper()
		mu.Lock()
		want := len(calls) + more
		mu.Unlock()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			got := len(calls)
			mu.Unlock()
			if got >= want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d calls of %d", got, want)
			}
		}
	}
	for range 3 {
		for _, s := range []*testleaf.Server{a, b} {
			enough(300)
			s.Stop()
			enough(100)
			s.Resume(t)
		}
	}
	enough(300)
	cancel()
	wg.Wait()
	slices.SortFunc(calls, func(a, b call) int { return int(a.Start - b.Start) })
	end, latest := int64(1), int64(0)
	for _, c := range calls {
		if c.Start < end || c.ended < latest {
			t.Fatalf("%v overlaps what ends at %d, or was there before a lower one was asked for", c.Range, end)
		}
		end, latest = c.End, max(latest, c.began)
	}
	t.Logf("%d calls, %d failed, %d IDs lost", len(calls), failed.Load(), end-1-sum(calls, func(c call) int64 { return c.Len() }))
}

func sum[T any](all []T, of func(T) int64) (n int64) {
	for _, v := range all {
		n += of(v)
	}
	return n
}
