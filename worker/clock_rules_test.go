package worker

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// The IDs' time follows a step forwards that three checks see alike, and that the registry's clock
// confirms. Each step that it does not follow is logged once.
func TestClockWatch(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	repeat := func(step time.Duration, n int) (steps []time.Duration) {
		for range n {
			steps = append(steps, step)
		}
		return steps
	}
	for _, tt := range []struct {
		name     string
		registry func(wall time.Time) time.Time // nil: it has no clock
		steps    []time.Duration                // of the wall clock, at each check
		follows  bool                           // at the last check, and at no other
		logs     string
		lines    int
	}{
		{"steady", nil, repeat(s, 3), true, "IDs follow", 1},
		{"two checks", nil, repeat(s, 2), false, "", 0},
		{"the least step", nil, repeat(smallStep, 3), true, "IDs follow", 1},
		{"less is no step", nil, repeat(smallStep-1, 40), false, "", 0},
		{"nearly steady", nil, []time.Duration{s, s + steadyStep, s}, true, "IDs follow", 1},
		{"another step in between", nil, []time.Duration{s, s + steadyStep + 1, s + steadyStep + 1, s + steadyStep + 1}, true, "IDs follow", 1},
		{"right in between", nil, []time.Duration{s, s, 0, s, s, s}, true, "IDs follow", 1},
		{"back", nil, repeat(-s, 40), false, "was set back", 1},
		{"back and further back", nil, append(repeat(-s, 3), repeat(-s-steadyStep-1, 3)...), false, "was set back", 2},
		{"back by nearly the same", nil, append(repeat(-s, 5), repeat(-s-steadyStep, 31)...), false, "was set back", 1},
		{"back, right, and back again", nil, append(append(repeat(-s, 3), 0), repeat(-s, 3)...), false, "was set back", 2},
		{"a long step alone", nil, repeat(defaultMaxJump+1, 3), false, "no other clock confirms it", 1},
		{"the longest one", nil, repeat(defaultMaxJump, 3), true, "IDs follow", 1},
		{"confirmed", func(wall time.Time) time.Time { return wall }, repeat(1000*time.Hour, 3), true, "IDs follow", 1},
		{"within the tolerance", func(wall time.Time) time.Time { return wall.Add(-DefaultTolerance) }, repeat(s, 3), true, "IDs follow", 1},
		{"not confirmed", func(wall time.Time) time.Time { return wall.Add(-DefaultTolerance - ms) }, repeat(time.Minute, 40), false, "is not followed", 1},
		{"not confirmed, and another one", func(wall time.Time) time.Time { return now }, append(repeat(time.Minute, 3), repeat(time.Hour, 3)...), false, "is not followed", 2},
		{"asked again", func(wall time.Time) time.Time {
			if wall.Before(now.Add(time.Minute + ms)) {
				return now
			}
			return wall
		}, append(repeat(time.Minute, 32), time.Minute+ms), true, "IDs follow", 2},
	} {
		var log strings.Builder
		r, c := &scripted{}, &stillClock{wall: now}
		k := c.keeper(t, r, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		w := clockWatch{Keeper: k}
		for i, step := range tt.steps {
			if c.wall = now.Add(step); tt.registry != nil {
				r.clock = tt.registry(c.wall)
			}
			if got, last := w.check(t.Context()), i == len(tt.steps)-1; got != (last && tt.follows) {
				t.Errorf("%s: check %d: %v", tt.name, i+1, got)
			}
			if got := k.Status().ClockStep; got != step {
				t.Errorf("%s: the status has a step of %v", tt.name, got)
			}
		}
		if left := c.wall.Sub(k.clock.Now()); (left == 0) != (tt.follows || c.wall.Equal(now)) {
			t.Errorf("%s: the clock is behind by %v", tt.name, left)
		}
		if !strings.Contains(log.String(), tt.logs) || strings.Count(log.String(), "\n") != tt.lines {
			t.Errorf("%s: logged %s", tt.name, log.String())
		}
		if tt.follows && (w.checks != 0 || w.logged != 0) {
			t.Errorf("%s: it still counts", tt.name)
		}
	}
}

// A step forwards is not followed while the registry cannot be asked.
func TestClockWatchWithoutRegistry(t *testing.T) {
	var log strings.Builder
	c := &stillClock{wall: now}
	w := clockWatch{Keeper: c.keeper(t, timeless{&scripted{}}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})}
	c.wall = now.Add(time.Second)
	for range 3 {
		if w.check(t.Context()) {
			t.Error("followed")
		}
	}
	if !strings.Contains(log.String(), "the worker registry's clock cannot be asked") {
		t.Errorf("logged %s", log.String())
	}
}

// A start compares this machine's clock with the registry's, and with the median of the running
// peers.
func TestCheckClock(t *testing.T) {
	const tolerance = DefaultTolerance
	peer := func(offset, seen time.Duration) Record {
		return Record{Owner: "m 2", Instance: Instance{1}, Offset: offset, Seen: now.Add(seen)}
	}
	own, gone, rightNow := peer(-time.Hour, 0), peer(-time.Hour, 0), time.Duration(0)
	own.Owner = "n 7"
	gone.Instance = Instance{}
	for _, tt := range []struct {
		name   string
		own    bool // the registry has no clock
		offset time.Duration
		peers  []Record
		want   string
	}{
		{"alone", false, rightNow, nil, ""},
		{"ahead by the tolerance", false, tolerance, nil, ""},
		{"ahead by more", false, tolerance + 1, nil, "ahead of the worker registry's"},
		{"behind by the tolerance", false, -tolerance, nil, ""},
		{"behind by more", false, -tolerance - 1, nil, "behind the worker registry's"},
		{"behind its peers", true, 0, []Record{peer(tolerance+1, 0)}, "behind the median of 1 running nodes"},
		{"as its peers, nearly", true, 0, []Record{peer(tolerance, 0)}, ""},
		{"the median", true, 0, []Record{peer(time.Hour, 0), peer(time.Hour, 0), peer(time.Hour, 0), peer(time.Hour, 0), peer(-time.Hour, 0), peer(-time.Hour, 0),
			peer(-time.Hour, 0), peer(-time.Hour, 0), peer(0, 0)}, ""},
		{"its own record", true, 0, []Record{own}, ""},
		{"one without a holder", true, 0, []Record{gone}, ""},
		{"a peer of long ago", true, 0, []Record{peer(-time.Hour, -peerAge)}, ""},
		{"a peer of just now", true, 0, []Record{peer(-time.Hour, -peerAge+1)}, "ahead of the median of 1"},
		{"a peer of the future", true, 0, []Record{peer(-time.Hour, peerAge+1)}, ""},
		{"nearly", true, 0, []Record{peer(-time.Hour, peerAge)}, "ahead of the median of 1"},
		{"right by the registry", false, rightClock, []Record{peer(-time.Hour, 0)}, ""},
		{"wrong by both", false, rightClock + 1, []Record{peer(-time.Hour, 0)}, "ahead of the median of 1"},
	} {
		k := stillKeeper(t, Options{Owner: "n 8"})
		v := view{registry: now, own: tt.own, offset: tt.offset, records: map[int64]Record{}}
		for i, r := range tt.peers {
			v.records[int64(i)] = r
		}
		err := k.checkClock(v)
		if (err == nil) != (tt.want == "") || err != nil && (!errors.Is(err, ErrClockOff) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// The registry's time was right in the middle of the question, and continues with the monotonic clock.
func TestReadClock(t *testing.T) {
	c := &stillClock{wall: now, mono: time.Hour}
	r := &scripted{clock: now.Add(-time.Minute)}
	k := c.keeper(t, slowClock{r, func() { c.tick(2 * time.Second) }}, Options{})
	v, err := k.readClock(t.Context())
	if err != nil || v.own || !v.registry.Equal(now.Add(-time.Minute+time.Second)) || v.offset != time.Minute+time.Second {
		t.Errorf("%+v, %v", v, err)
	}
	c.tick(time.Minute + time.Microsecond)
	if got := k.now(v); !got.Equal(now.Add(time.Second)) {
		t.Errorf("a minute later it is %v", got.Sub(now))
	}
	r.clock = time.Time{}
	if v, err = k.readClock(t.Context()); err != nil || !v.own || v.offset != 0 || !v.registry.Equal(k.clock.milli()) {
		t.Errorf("without a clock: %+v, %v", v, err)
	}
	if _, err := c.keeper(t, timeless{r}, Options{}).readAll(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("without an answer: %v", err)
	}
	if _, err := c.keeper(t, epochs{r, ServerEpoch{}, errDown}, Options{}).readAll(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("without an answer for the server: %v", err)
	}
	lossy := epochs{r, ServerEpoch{Lossy: true, Incarnation: "a"}, nil}
	for delay, want := range map[time.Duration]bool{0: true, time.Minute: true, -1: false} {
		if v, err := c.keeper(t, lossy, Options{ClaimDelay: delay}).readAll(t.Context()); err != nil || v.epoch.Lossy != want {
			t.Errorf("with a claim delay of %v: %+v, %v", delay, v.epoch, err)
		}
	}
}

// A slowClock answers late when asked for the time.
type slowClock struct {
	*scripted
	wait func()
}

func (r slowClock) Clock(ctx context.Context) (time.Time, error) {
	r.wait()
	return r.scripted.Clock(ctx)
}
