package segment_test

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

func TestLeafStep(t *testing.T) {
	const min = time.Minute
	for _, c := range []struct {
		last, tag int64
		lived     time.Duration
		want      int64
	}{
		{2000, 2000, 0, 4000},
		{2000, 2000, 15*min - 1, 4000},
		{2000, 2000, 15 * min, 2000},
		{2000, 2000, 30*min - 1, 2000},
		{4000, 2000, 30 * min, 2000},
		{3999, 2000, 30 * min, 3999}, // half would fall below the tag's step
		{500_000, 2000, 0, 1_000_000},
		{500_001, 2000, 0, 500_001},
		{1_000_000, 2000, 0, 1_000_000},
		{3_000_000, 3_000_000, 0, 3_000_000},
		{math.MaxInt32, math.MaxInt32, 0, math.MaxInt32}, // Java overflows here
		{math.MaxInt64, 1, 0, math.MaxInt64},
		{2000, 9000, 0, 9000}, // a raised step is taken up
		{4000, 100, 30 * min, 2000},
		{1, 1, time.Hour, 1},
	} {
		if got := segment.LeafStep(c.last, c.tag, c.lived); got != c.want {
			t.Errorf("LeafStep(%d, %d, %v) = %d, want %d", c.last, c.tag, c.lived, got, c.want)
		}
	}
}

func TestLeafStepProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tag := rapid.Int64Range(1, segment.MaxStep).Draw(t, "tag")
		last := rapid.Int64Range(1, math.MaxInt64).Draw(t, "last")
		lived := time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "lived"))
		got := segment.LeafStep(last, tag, lived)
		if got < tag {
			t.Fatalf("%d is below the tag's step", got)
		}
		if got > last && got != tag && got > 1_000_000 {
			t.Fatalf("grew to %d, beyond Java's bound", got)
		}
	})
}

// With Java's policy the sizes of the allocations follow Java's rule: the tag's own
// step twice, then doubling while segments live for less than 15 minutes, kept
// under 30, halved above.
func TestLeafPolicyEvolution(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: segment.Leaf})
		defer closeBuffer(t, b)
		take := func(n int) {
			if _, err := b.Take(t.Context(), nil, n); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		var sizes []int64
		check := func(what string, want ...int64) {
			t.Helper()
			for _, r := range store.Granted("order")[len(sizes):] {
				sizes = append(sizes, r.Len())
			}
			if diff := cmp.Diff(want, sizes); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		take(101) // 1 … 101
		check("first load, 10 % used", 1000)
		take(1)
		check("prefetch once more than 10 % are used", 1000, 1000)
		for range 8 {
			take(100)
		}
		check("no more than two segments", 1000, 1000)
		time.Sleep(14 * time.Minute)
		take(200) // 102 of the second segment
		check("a second segment under 15 minutes old", 1000, 1000, 2000)
		time.Sleep(20 * time.Minute)
		take(1100)
		check("between 15 and 30 minutes", 1000, 1000, 2000, 2000)
		time.Sleep(31 * time.Minute)
		take(2000)
		check("more than 30 minutes", 1000, 1000, 2000, 2000, 1000)
		time.Sleep(40 * time.Minute)
		take(2000)
		check("not below the tag's step", 1000, 1000, 2000, 2000, 1000, 1000)
	})
}

// A step that an operator changed is taken up.
func TestStepChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Policy: segment.Leaf}})
		defer set.Close(t.Context())
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		step := int64(5000)
		if _, err := store.Alter(t.Context(), "order", segment.Change{Step: &step}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := set.Take(t.Context(), "order", nil, 100); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		granted := store.Granted("order")
		if got := granted[len(granted)-1].Len(); got < step {
			t.Fatalf("allocations %v do not reach the raised step", granted)
		}
	})
}

// consume takes rate IDs a second for d, in ticks of 10 ms.
func consume(t testing.TB, b *segment.Buffer, rate int, d time.Duration) (errs int) {
	t.Helper()
	const tick = 10 * time.Millisecond
	due := 0.0
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(tick) {
		for due += float64(rate) * tick.Seconds(); due >= 1; due-- {
			if _, err := b.Next(t.Context()); err != nil {
				errs++
			}
		}
	}
	return errs
}

// Callers do not notice a thousandfold burst, with a store that takes 50 ms.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 2000)
		store.Set(drivertest.Fault{Latency: 50 * time.Millisecond})
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		if errs := consume(t, b, 10, 10*time.Minute); errs != 0 {
			t.Fatalf("%d errors at 10/s", errs)
		}
		calm, waits := store.Calls(drivertest.OpAdvance), b.Stats().Waits
		if errs := consume(t, b, 10_000, 10*time.Second); errs != 0 || b.Stats().Waits > waits {
			t.Fatalf("%d errors in the burst, %d callers waited", errs, b.Stats().Waits-waits)
		}
		synctest.Wait()
		calls := store.Calls(drivertest.OpAdvance) - calm
		t.Logf("%d calls in 10 min at 10/s, %d in 10 s at 10,000/s", calm, calls)
		if calls > 60 {
			t.Errorf("%d calls to the store for one burst", calls)
		}
		if st := b.Stats(); st.Stock < st.Issued*8/10 {
			t.Errorf("after the burst %d IDs are in memory, %d were issued", st.Stock, st.Issued)
		}
	})
}

// How long the stock lasts is known under Java's rule too, which does not ask for it.
func TestRateUnderLeafPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := segment.NewBuffer(newStore(t, 1, 1000), "order", &segment.Options{Policy: segment.Leaf})
		defer closeBuffer(t, b)
		consume(t, b, 100, 5*time.Minute)
		if st := b.Stats(); st.Rate < 90 || st.Rate > 110 || st.Lasts == 0 {
			t.Errorf("rate %.0f/s, the stock lasts %v", st.Rate, st.Lasts)
		}
	})
}

// A single large batch is not a burst: it does not fill the memory.
func TestBatchIsNoBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		consume(t, b, 10, time.Minute)
		for _, n := range []int{200, 10_000, 1} {
			if _, err := b.Take(t.Context(), nil, n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(150 * time.Millisecond)
		}
		consume(t, b, 10, time.Minute)
		if st := b.Stats(); st.Stock > 200_000 {
			t.Errorf("%d IDs in memory after one batch of 10,000", st.Stock)
		}
		time.Sleep(10 * time.Minute)
		if st := b.Stats(); st.Rate > 20 { // 10,600 IDs in 11 minutes
			t.Errorf("rate %.0f/s after ten minutes of silence", st.Rate)
		}
	})
}

// Callers do not notice an absence of the store of almost the outage budget.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 1000)
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		if errs := consume(t, b, 1000, 10*time.Minute); errs != 0 {
			t.Fatalf("%d errors before", errs)
		}
		store.Set(drivertest.Fault{Before: errDown})
		if errs := consume(t, b, 1000, 8*time.Minute); errs != 0 {
			t.Fatalf("%d errors within the outage budget", errs)
		}
		store.Set(drivertest.Fault{})
		if errs := consume(t, b, 1000, 20*time.Minute); errs != 0 {
			t.Fatalf("%d errors after", errs)
		}
	})
}

// Whatever the demand, no more than the loss budget is ever in memory.
func TestLossBudget(t *testing.T) {
	for _, c := range []struct {
		batch int
		step  int64
	}{{30, 2000}, {100, 2000}, {5000, 2000}, {5000, 40_000}} {
		t.Run(fmt.Sprint(c.batch, c.step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const budget = 50_000
				batch := c.batch
				store := newStore(t, 0, c.step)
				b := segment.NewBuffer(store, "order", &segment.Options{MaxStock: budget})
				defer closeBuffer(t, b)
				var issued, worst int64
				for range 2000 {
					if _, err := b.Take(t.Context(), nil, batch); err != nil {
						t.Fatal(err)
					}
					issued += int64(batch)
					synctest.Wait()
					granted := store.Granted("order")
					worst = max(worst, granted[len(granted)-1].End-issued)
					time.Sleep(time.Millisecond)
				}
				if worst > budget || worst < budget/2 {
					t.Errorf("up to %d IDs in memory, the budget is %d", worst, budget)
				}
			})
		})
	}
}

// Where the budgets disagree the log says so, once, and how long the stock lasts.
func TestBudgetsDisagree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		b := segment.NewBuffer(newStore(t, 1, 2000), "order", &segment.Options{MaxStock: 60_000, Logger: logger})
		defer closeBuffer(t, b)
		consume(t, b, 80, 20*time.Minute)
		if log.Len() > 0 {
			t.Errorf("at 80/s: %s", &log)
		}
		consume(t, b, 1000, 10*time.Minute)
		synctest.Wait()
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "lasts=1m0s outage_budget=10m0s") {
			t.Errorf("at 1000/s: %s", got)
		}
	})
}

// If a batch is much larger than the stock, each call brings as much as all earlier ones.
func TestLargeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step, batch = 10, 100_000
		store := newStore(t, 1, step)
		b := segment.NewBuffer(store, "order", nil)
		defer closeBuffer(t, b)
		if _, err := b.Take(t.Context(), nil, batch); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := store.Calls(drivertest.OpAdvance); n > 17 { // 10 × 2^14 are more than 100,000
			t.Errorf("%d calls to the store for a batch of %d", n, batch)
		}
		checkBound(t, store, step, b)
	})
}

// Under any mix of callers and demand the buffer issues every granted ID once.
func TestRandomLoad(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		step := rapid.Int64Range(1, 300).Draw(rt, "step")
		policy := segment.Policy(rapid.IntRange(0, 1).Draw(rt, "policy"))
		maxStock := rapid.Int64Range(50, 5000).Draw(rt, "maxStock")
		batches := rapid.SliceOfN(rapid.IntRange(1, 50), 1, 60).Draw(rt, "batches")
		store := memory.New().Store()
		if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: step}); err != nil {
			rt.Fatal(err)
		}
		b := segment.NewBuffer(store, "order", &segment.Options{Policy: policy, MaxStock: maxStock})
		var ranges drivertest.Ranges
		var wg sync.WaitGroup
		for _, n := range batches {
			wg.Go(func() {
				got, err := b.Take(t.Context(), nil, n)
				if err != nil {
					rt.Error(err)
				}
				ranges.Add(got...)
			})
		}
		wg.Wait()
		if err := b.Close(t.Context()); err != nil {
			rt.Error(err)
		}
		if err := ranges.Check(); err != nil {
			rt.Error(err)
		}
		after, err := store.Advance(t.Context(), "order", 1)
		if err != nil {
			rt.Fatal(err)
		}
		if got := ranges.Count() + 1; after.Range.Start != got {
			rt.Errorf("%d IDs issued, then the counter stands at %d", got-1, after.Range.Start)
		}
	})
}

var _ leaf.Generator = (*segment.Buffer)(nil)
