package kv_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// The store forgets counters of unknown tags, and of no others.
func TestUnknownCountersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, memory.NewBackend(), order)
		for i := range 100 {
			if _, err := s.Advance(t.Context(), fmt.Sprint("none", i), 1); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Error(err)
			}
		}
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := s.Counters(); n != 1 {
			t.Errorf("%d counters are kept", n)
		}
	})
}

// The store takes no IDs for callers who have left while the backend was busy.
func TestCallersWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &hooked{Backend: memory.NewBackend()}
		s := newStore(t, b, order)
		free := make(chan struct{})
		b.before = func(_ context.Context, call string) error {
			if call == "swap tags/order" {
				<-free
			}
			return nil
		}
		first := make(chan error, 1)
		go func() { _, err := s.Advance(t.Context(), "order", 10); first <- err }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() { _, err := s.Advance(ctx, "order", 1000); second <- err }()
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the hooked store has not answered yet") {
			t.Errorf("the caller who left: %v", err)
		}
		close(free)
		if err := <-first; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := value(t, b.Backend, orderKey); !strings.Contains(got, `"max_id":11,`) {
			t.Errorf("the counter is %s", got)
		}
	})
}

// A conflict that shows the present cell needs no read, at first: after three late tries in a row
// the round waits and reads. The cell says how late the writer was, and forgets a quarter of it
// with each write; the next round reads before it writes while the cell says so.
func TestRetries(t *testing.T) {
	for conflicts, want := range []struct {
		gets int
		late string
	}{{0, ""}, {0, ""}, {0, `"late":1`}, {0, `"late":2`}, {1, `"late":3`}, {1, `"late":4`}, {1, `"late":5`}, {2, `"late":6`}} {
		b := &hooked{Backend: memory.NewBackend()}
		s := newStore(t, b, order)
		advance := func() {
			t.Helper()
			if _, err := s.Advance(t.Context(), "order", 1); err != nil {
				t.Error(err)
			}
		}
		advance()
		b.log = nil
		left := conflicts
		b.before = func(_ context.Context, call string) error {
			if left > 0 && strings.HasPrefix(call, "swap") {
				left--
				text := value(t, b.Backend, orderKey)
				set(t, b.Backend, orderKey, text)
			}
			return nil
		}
		advance()
		if gets := b.count("get tags/order"); gets != want.gets {
			t.Errorf("%d conflicts: %d reads, want %d", conflicts, gets, want.gets)
		}
		text := value(t, b.Backend, orderKey)
		if got := strings.Contains(text, `"late"`); !strings.Contains(text, want.late+"}") || got != (want.late != "") {
			t.Errorf("%d conflicts: the cell is %s, want %s", conflicts, text, want.late)
		}
		if conflicts == 7 {
			for _, late := range []string{`"late":4}`, `"late":3}`, `"late":2}`, `"late":1}`} {
				advance()
				if text, gets := value(t, b.Backend, orderKey), b.count("get tags/order"); !strings.Contains(text, late) || gets != 1 {
					t.Errorf("after %d reads: %s, want %s", gets, text, late)
				}
			}
			advance()
			advance()
			if text, gets := value(t, b.Backend, orderKey), b.count("get tags/order"); strings.Contains(text, "late") || gets != 1 {
				t.Errorf("alone again after %d reads: %s", gets, text)
			}
		}
	}
}

// If rivals were late, a round reads once, then continues from the cells that conflicts return.
func TestRetriesWhereCrowded(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	s := newStore(t, b, order)
	set(t, b.Backend, orderKey, `{"v":1,"max_id":1,"step":1,"updated":1,"late":9}`)
	left := 2
	b.before = func(_ context.Context, call string) error {
		if left > 0 && call == "swap tags/order" {
			left--
			set(t, b.Backend, orderKey, value(t, b.Backend, orderKey))
		}
		return nil
	}
	b.log = nil
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Error(err)
	}
	if n := b.count("get tags/order"); n != 1 {
		t.Errorf("%d reads", n)
	}
}

// A round waits for a random time, of up to as many trips as the cell says that rivals were late,
// at most 32 and a second.
func TestWaitForRivals(t *testing.T) {
	for late, most := range map[int]time.Duration{0: 0, 4: 8 * trip, 1_000_000: 64 * trip} {
		synctest.Test(t, func(t *testing.T) {
			cells := memory.NewBackend()
			newStore(t, cells, order)
			s := open(t, slow{cells}).Store()
			longest := time.Duration(0)
			for i := range 60 {
				set(t, cells, orderKey, fmt.Sprintf(`{"v":1,"max_id":%d,"step":1,"updated":1,"late":%d}`, 100*(i+1), late))
				if i > 0 { // the last write was of another process
					start := time.Now()
					if _, err := s.Advance(t.Context(), "order", 1); err != nil {
						t.Fatal(err)
					}
					if i > 30 {
						longest = max(longest, time.Since(start))
					}
					continue
				}
				if _, err := s.Advance(t.Context(), "order", 1); err != nil {
					t.Fatal(err)
				}
			}
			if longest > most+6*trip || longest < most/4 {
				t.Errorf("late %d: the longest call took %v, want up to %v", late, longest, most)
			}
		})
	}
}

// After 32 wins in a row a process lets others try once, but only if it has another call at once.
func TestLongRunPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cells := memory.NewBackend()
		newStore(t, cells, order)
		s := open(t, slow{cells}).Store()
		took := func() time.Duration {
			start := time.Now()
			if _, err := s.Advance(t.Context(), "order", 1); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		took() // it reads
		for round := range 3 {
			for i := 1; i < 32; i++ {
				if round == 0 && i == 31 {
					time.Sleep(time.Second)
				}
				if d := took(); d != trip {
					t.Errorf("round %d: call %d took %v", round, i, d)
				}
			}
			if d := took(); d <= trip || d > 2*trip {
				t.Errorf("round %d: the call after 32 took %v", round, d)
			}
		}
		for range 31 {
			took()
		}
		time.Sleep(time.Second)
		if d := took(); d != trip {
			t.Errorf("a call after a pause of its own took %v", d)
		}
		set(t, cells, orderKey, value(t, cells, orderKey))
		if d := took(); d < 2*trip {
			t.Errorf("a call with a rival took %v", d)
		}
		for i := range 31 {
			if d := took(); d != trip {
				t.Errorf("call %d after a conflict took %v", i, d)
			}
		}
	})
}

// After a swap of unknown outcome, after a failed identity and after a damaged cell the next call
// reads the cell.
func TestUnknownCellIsRead(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	s := newStore(t, b, order)
	advance := func(want error) {
		t.Helper()
		if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	fail := func(at string) {
		b.before = func(_ context.Context, call string) error {
			if call == at {
				return errBroken
			}
			return nil
		}
	}
	advance(nil)
	fail("swap tags/order")
	advance(errBroken)
	fail("")
	b.log = nil
	advance(nil)
	if n := b.count("get tags/order"); n != 1 {
		t.Errorf("%d reads after a swap of unknown outcome", n)
	}
	older(t, b, orderKey)
	fail("get format/tags")
	advance(errBroken)
	set(t, b.Backend, orderKey, `{"v":1,"max_id":-1}`)
	fail("")
	b.log = nil
	advance(segment.ErrDamaged)
	if n := b.count("get tags/order"); n != 1 {
		t.Errorf("%d reads after a failed identity", n)
	}
	set(t, b.Backend, orderKey, `{"v":1,"max_id":70,"step":1}`)
	advance(nil)
	if slices.Contains(b.log, "swap format/tags") {
		t.Error("the marker was written")
	}
}

// A call for a period that begins after a raise of its tag gets no lower number, though it shares a
// round with a call that began before.
func TestRaiseWithinARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &hooked{Backend: memory.NewBackend()}
		daily := segment.Tag{Name: "daily", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionPeriod: "day"}}
		s := newStore(t, b, daily)
		free := make(chan struct{})
		b.before = func(_ context.Context, call string) error {
			if call == "swap periods/2000-01-01 daily" {
				<-free
			}
			return nil
		}
		var calls sync.WaitGroup
		starts := make([]int64, 3)
		advance := func(i int) {
			calls.Go(func() {
				g, err := s.AdvanceStrict(t.Context(), "daily", "2000-01-01", 1)
				if err != nil {
					t.Error(err)
				}
				starts[i] = g.Range.Start
			})
			synctest.Wait()
		}
		advance(0) // its round keeps the others waiting
		advance(1)
		if _, err := s.Alter(t.Context(), "daily", segment.Change{MaxID: new(int64(5000))}); err != nil {
			t.Fatal(err)
		}
		advance(2)
		close(free)
		calls.Wait()
		if starts[2] < 5000 {
			t.Errorf("the calls got %v: the last one began after a raise to 5000", starts)
		}
	})
}
