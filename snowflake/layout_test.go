package snowflake_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func preset(t testing.TB, name string) snowflake.Layout {
	t.Helper()
	l, ok := snowflake.Preset(name)
	if !ok {
		t.Fatalf("no preset %q", name)
	}
	return l
}

func TestCheck(t *testing.T) {
	ms := time.Millisecond
	tests := []struct {
		name   string
		layout snowflake.Layout
		ok     bool
	}{
		{"leaf", preset(t, "leaf"), true},
		{"js53", preset(t, "js53"), true},
		{"time only", snowflake.Layout{epoch, ms, 63, 0, 0}, true},
		{"one bit of time", snowflake.Layout{epoch, ms, 1, 31, 31}, true},
		{"10 ms", snowflake.Layout{epoch, 10 * ms, 39, 16, 8}, true},
		{"odd tick", snowflake.Layout{epoch, 7 * ms, 39, 16, 8}, true},
		{"old epoch", snowflake.Layout{time.Date(1, 1, 1, 0, 0, 0, int(ms), time.UTC), ms, 50, 5, 8}, true},
		{"zero", snowflake.Layout{}, false},
		{"no epoch", snowflake.Layout{time.Time{}, ms, 41, 10, 12}, false},
		{"epoch too late", snowflake.Layout{epoch.AddDate(8000, 0, 0), ms, 41, 10, 12}, false},
		{"epoch in µs", snowflake.Layout{epoch.Add(time.Microsecond), ms, 41, 10, 12}, false},
		{"no tick", snowflake.Layout{epoch, 0, 41, 10, 12}, false},
		{"negative tick", snowflake.Layout{epoch, -ms, 41, 10, 12}, false},
		{"tick in µs", snowflake.Layout{epoch, ms + time.Microsecond, 41, 10, 12}, false},
		{"64 bits", snowflake.Layout{epoch, ms, 42, 10, 12}, false},
		{"no time", snowflake.Layout{epoch, ms, 0, 10, 12}, false},
		{"negative worker", snowflake.Layout{epoch, ms, 41, -1, 12}, false},
		{"negative sequence", snowflake.Layout{epoch, ms, 41, 10, -1}, false},
		{"sum wraps", snowflake.Layout{epoch, ms, math.MaxInt, math.MaxInt, 3}, false},
	}
	for _, tt := range tests {
		if err := tt.layout.Check(); (err == nil) != tt.ok || err != nil && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: got error %v, want one: %t", tt.name, err, !tt.ok)
		}
		if _, err := tt.layout.Decode(1); (err == nil) != tt.ok {
			t.Errorf("%s: Decode: got error %v", tt.name, err)
		}
		if _, err := tt.layout.Compose(1, 0, 0); (err == nil) != tt.ok {
			t.Errorf("%s: Compose: got error %v", tt.name, err)
		}
	}
}

func TestPresets(t *testing.T) {
	type facts struct {
		First, Last         string
		MaxWorker, Sequence int64
		Largest             int64
	}
	want := map[string]facts{
		"leaf": {"2010-11-04T01:42:54.657Z", "2080-07-10T17:30:30.208Z", 1023, 4095, math.MaxInt64},
		"js53": {"2026-01-01T00:00:00Z", "2095-09-07T15:47:35.551Z", 31, 127, 1<<53 - 1},

		"uid":       {"2016-05-19T16:00:00Z", "2084-06-06T19:14:07Z", 1<<19 - 1, 8191, math.MaxInt64},
		"uid-baidu": {"2016-05-19T16:00:00Z", "2024-11-20T13:24:15Z", 1<<22 - 1, 8191, math.MaxInt64},
	}
	got := map[string]facts{}
	for _, name := range snowflake.PresetNames() {
		l := preset(t, name)
		largest, err := l.Compose(1<<l.TimeBits-1, l.MaxWorker(), l.MaxSequence())
		if err != nil {
			t.Error(err)
		}
		got[name] = facts{
			l.First().Format(time.RFC3339Nano), l.Last().Format(time.RFC3339Nano), l.MaxWorker(), l.MaxSequence(), largest,
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !slices.IsSorted(snowflake.PresetNames()) {
		t.Error("names are not sorted")
	}
	if _, ok := snowflake.Preset("nope"); ok {
		t.Error("there is a preset \"nope\"")
	}
}

func TestComposeRefusesWhatDoesNotFit(t *testing.T) {
	l := preset(t, "leaf")
	for _, c := range [][3]int64{
		{-1, 0, 0}, {1 << 41, 0, 0}, {0, -1, 0}, {0, 1024, 0}, {0, 0, -1}, {0, 0, 4096},
		{math.MinInt64, 0, 0}, {math.MaxInt64, 0, 0},
	} {
		if id, err := l.Compose(c[0], c[1], c[2]); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("Compose%v = %d, error %v", c, id, err)
		}
	}
}

func TestDecode(t *testing.T) {
	got, err := preset(t, "leaf").Decode(1234567890123456789)
	want := snowflake.Parts{
		Time: time.UnixMilli(1288834974657 + 294343922167).UTC(), Tick: 294343922167, Worker: 664, Sequence: 277,
	}
	if err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, id := range []int64{-1, 1 << 53, math.MaxInt64, math.MinInt64} {
		if _, err := preset(t, "js53").Decode(id); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("Decode(%d): error %v", id, err)
		}
	}
}

func TestRecord(t *testing.T) {
	want := worker.ServedLayout{Name: "x", Epoch: epoch.UnixMilli(), Tick: 10, TimeBits: 39, WorkerBits: 16, SequenceBits: 8}
	if got := (snowflake.Layout{epoch, 10 * time.Millisecond, 39, 16, 8}).Record("x"); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestRounding(t *testing.T) {
	l := snowflake.Layout{epoch, 10 * time.Second, 10, 0, 0}
	e := epoch.UnixMilli()
	for _, tt := range []struct{ ms, up, down int64 }{
		{math.MinInt64, 0, 0}, {0, 0, 0}, {e, 0, 0}, {e + 1, 1, 0}, {e + 9999, 1, 0}, {e + 10_000, 1, 1}, {e + 10_001, 2, 1},
		{e + 10_240_000, 1024, 1024}, {e + 10_240_001, 1024, 1024}, {math.MaxInt64, 1024, 1024},
	} {
		if up, down := l.TickUp(tt.ms), l.TickDown(tt.ms); up != tt.up || down != tt.down {
			t.Errorf("%d: up %d, down %d, want %d and %d", tt.ms-e, up, down, tt.up, tt.down)
		}
	}
	for tick, want := range map[int64]int64{0: e, 7: e + 70_000, math.MaxInt64: math.MaxInt64, math.MaxInt64 / 10000: math.MaxInt64} {
		if got := l.Start(tick).UnixMilli(); got != want {
			t.Errorf("Start(%d) = %d, want %d", tick, got, want)
		}
	}
}

// splits calls f with every split of that many bits.
func splits(sum int, f func(snowflake.Layout)) {
	for time := 1; time <= sum; time++ {
		for worker := 0; worker <= sum-time; worker++ {
			f(snowflake.Layout{epoch, 1e6, time, worker, sum - time - worker})
		}
	}
}

// The IDs of one tick and worker end where those of the next worker begin, and those of
// the last worker where those of the next tick do: then no two of them ever meet.
func TestNeighboursNeverMeet(t *testing.T) {
	compose := func(l snowflake.Layout, tick, worker, sequence int64) int64 {
		id, err := l.Compose(tick, worker, sequence)
		if err != nil || id < 0 {
			t.Fatalf("%+v: Compose(%d, %d, %d) = %d, %v", l, tick, worker, sequence, id, err)
		}
		return id
	}
	for _, sum := range []int{63, 53, 1} {
		splits(sum, func(l snowflake.Layout) {
			workers := []int64{0, 1, 63, 64, 1023, l.MaxWorker() / 2, l.MaxWorker() - 1, l.MaxWorker()}
			lastTick := int64(uint64(1)<<l.TimeBits - 1)
			for _, tick := range []int64{0, 1, lastTick / 2, lastTick - 1, lastTick} {
				for _, w := range workers {
					if w < 0 || w > l.MaxWorker() || tick > lastTick {
						continue
					}
					first, last := compose(l, tick, w, 0), compose(l, tick, w, l.MaxSequence())
					if last-first != l.MaxSequence() {
						t.Fatalf("%+v: tick %d of worker %d has IDs %d … %d", l, tick, w, first, last)
					}
					nextTick, nextWorker := tick, w+1
					if w == l.MaxWorker() {
						nextTick, nextWorker = tick+1, 0
					}
					if (w < l.MaxWorker() || tick < lastTick) && compose(l, nextTick, nextWorker, 0) != last+1 {
						t.Fatalf("%+v: worker %d does not follow worker %d in tick %d", l, nextWorker, w, tick)
					}
				}
			}
		})
	}
}

func drawLayout(t *rapid.T) snowflake.Layout {
	timeBits := rapid.IntRange(1, 63).Draw(t, "time bits")
	workerBits := rapid.IntRange(0, 63-timeBits).Draw(t, "worker bits")
	return snowflake.Layout{
		Epoch:        time.UnixMilli(rapid.Int64Range(-62135596799999, 253402300799999).Draw(t, "epoch")),
		Tick:         time.Duration(rapid.SampledFrom([]int{1, 10, 1000, 7, 86_400_000}).Draw(t, "tick")) * time.Millisecond,
		TimeBits:     timeBits,
		WorkerBits:   workerBits,
		SequenceBits: rapid.IntRange(0, 63-timeBits-workerBits).Draw(t, "sequence bits"),
	}
}

// Rounding up or down keeps times on their side of the ticks.
func TestRoundingProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayout(t)
		ms := rapid.Int64().Draw(t, "ms")
		up, down, ticks := l.TickUp(ms), l.TickDown(ms), l.TickDown(math.MaxInt64)
		if down < 0 || up < down || up-down > 1 || up > ticks {
			t.Fatalf("up %d, down %d", up, down)
		}
		if up < ticks && l.Start(up).UnixMilli() < ms {
			t.Fatalf("tick %d begins %d before the floor", up, ms-l.Start(up).UnixMilli())
		}
		if down > 0 && l.Start(down).UnixMilli() > ms {
			t.Fatalf("tick %d ends %d after the limit", down-1, l.Start(down).UnixMilli()-ms)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(int64(1234567890123456789), 41, 10, 12)
	f.Add(int64(math.MaxInt64), 63, 0, 0)
	f.Add(int64(-1), 1, 31, 31)
	f.Fuzz(func(t *testing.T, id int64, timeBits, workerBits, sequenceBits int) {
		l := snowflake.Layout{epoch, time.Millisecond, timeBits, workerBits, sequenceBits}
		p, err := l.Decode(id)
		if err != nil {
			if !errors.Is(err, leaf.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if back, err := l.Compose(p.Tick, p.Worker, p.Sequence); back != id || err != nil {
			t.Fatalf("%d decodes to %+v, which makes %d, %v", id, p, back, err)
		}
		if p.Time.UnixMilli() != l.Start(p.Tick).UnixMilli() {
			t.Fatalf("tick %d at %v", p.Tick, p.Time)
		}
	})
}
