package worker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// now is the time of tests with stopped clocks.
var now = time.UnixMilli(1_800_000_000_000)

// A stillClock is a clock that a test sets.
type stillClock struct {
	wall time.Time
	mono time.Duration
}

// keeper returns a keeper with that clock.
func (c *stillClock) keeper(t testing.TB, reg Registry, opts Options) *Keeper {
	t.Helper()
	opts.Clock = NewClockFrom(func() time.Time { return c.wall }, func() time.Duration { return c.mono })
	k, err := NewKeeper(reg, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func stillKeeper(t testing.TB, opts Options) *Keeper {
	return (&stillClock{wall: now}).keeper(t, nil, opts)
}

// lossyView is a view at the time now by all clocks, of an incarnation.
func lossyView(incarnation string) view {
	return view{registry: now, drift: time.Duration(now.UnixNano()), epoch: ServerEpoch{Lossy: true, Incarnation: incarnation}}
}

// A lease ends at its horizon by the registry's clock and this machine's. The tolerance counts against
// it if another server's clock may have given the worker ID away.
func TestHorizonOnLossyRegistry(t *testing.T) {
	const ms = time.Millisecond
	named := ServerEpoch{Lossy: true, Incarnation: "a"}
	untracked, unknown, other := named, named, named
	untracked.Untracked, unknown.Incarnation, other.Incarnation = true, "", "b"
	for _, tt := range []struct {
		name           string
		epoch          ServerEpoch
		registry, wall time.Duration // after the horizon
		fromFile, over bool
	}{
		{"lost nothing", ServerEpoch{}, time.Hour, time.Hour, false, false},
		{"before", named, -ms, time.Hour, false, false},
		{"at", named, 0, time.Hour, false, true},
		{"at, by this clock with the tolerance", named, time.Hour, -DefaultTolerance, false, true},
		{"this clock is earlier", named, time.Hour, -DefaultTolerance - ms, false, false},
		{"an unchecked clock does not count", named, 0, -time.Hour, true, true},
		{"before, from the file", named, -ms, time.Hour, true, false},
		{"untracked, before", untracked, -DefaultTolerance - ms, time.Hour, false, false},
		{"untracked", untracked, -DefaultTolerance, time.Hour, false, true},
		{"unknown", unknown, -DefaultTolerance, time.Hour, false, true},
		{"another incarnation", other, -DefaultTolerance, time.Hour, false, true},
		{"another incarnation, before", other, -DefaultTolerance - ms, time.Hour, false, false},
	} {
		c := &stillClock{wall: now.Add(tt.wall), mono: time.Second}
		k := c.keeper(t, nil, Options{})
		v := view{registry: now.Add(tt.registry - time.Second), drift: k.clock.drift(), epoch: tt.epoch} // a second ago
		held := Record{Horizon: now, Incarnation: tt.epoch.Incarnation}
		if tt.epoch == other {
			held.Incarnation = "a"
		}
		if err := k.losses.checkHorizon(v, held, tt.fromFile); errors.Is(err, ErrTaken) != tt.over || (err != nil) != tt.over {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A process may be paused after its question for the incarnation. The time, or the answer to the swap,
// is then that of another server. It matters only near the horizon.
func TestAnswerOfAnotherServer(t *testing.T) {
	for _, tt := range []struct {
		name   string
		left   time.Duration // of the lease, by the time in the view
		now    ServerEpoch
		err    error
		remain string // the incarnation
		want   error  // of the agreement
	}{
		{"far from the horizon", DefaultTolerance + time.Millisecond, ServerEpoch{}, errDown, "a", nil},
		{"the same server", DefaultTolerance, ServerEpoch{Lossy: true, Incarnation: "a"}, nil, "a", nil},
		{"another one", DefaultTolerance, ServerEpoch{Lossy: true, Incarnation: "b"}, nil, "", ErrTaken},
		{"no answer", DefaultTolerance, ServerEpoch{}, errDown, "", errDown},
	} {
		k := (&stillClock{wall: now}).keeper(t, epochs{nil, tt.now, tt.err}, Options{})
		v, held := lossyView("a"), Record{Horizon: now.Add(tt.left), Incarnation: "a"}
		if err := k.losses.agree(t.Context(), v, held, held, false); !errors.Is(err, tt.want) || tt.want == errDown && errors.Is(err, ErrTaken) {
			t.Errorf("%s: agreed with %v, want %v", tt.name, err, tt.want)
		}
		err := k.losses.checkServer(t.Context(), &v, held)
		if v.epoch.Incarnation != tt.remain || (err != nil) != (tt.remain == "" && tt.err != nil) {
			t.Errorf("%s: incarnation %q, %v", tt.name, v.epoch.Incarnation, err)
		}
	}
}

// A short lease ends unless the registry agrees to it in time, with a long enough claim delay.
func TestShortLeaseEnds(t *testing.T) {
	delay := stillKeeper(t, Options{}).opts.ClaimDelay
	for _, tt := range []struct {
		name         string
		short, lossy bool
		safe, delay  time.Duration
		over         bool
	}{
		{"in time", true, true, time.Millisecond, delay, false},
		{"too late", true, true, 0, delay, true},
		{"a short claim delay", true, true, time.Hour, delay - time.Millisecond, true},
		{"not short", false, true, 0, delay, false},
		{"loses nothing", true, false, 0, 0, false},
		{"another server, in time", true, true, DefaultTolerance + time.Millisecond, delay, false},
		{"another server, too late", true, true, DefaultTolerance, delay, true},
	} {
		k := stillKeeper(t, Options{ClaimDelay: delay + time.Microsecond}) // which a record does not hold
		k.losses.continued(now.Add(tt.safe), Record{})
		k.losses.short = tt.short
		v := lossyView("a")
		v.epoch.Lossy = tt.lossy
		r := Record{Horizon: now.Add(time.Hour), Seen: now, ClaimDelay: tt.delay, Incarnation: "a"}
		held := r
		if strings.HasPrefix(tt.name, "another") {
			held.Incarnation = "b"
		}
		err := k.losses.agree(t.Context(), v, held, r, false)
		if errors.Is(err, ErrTaken) != tt.over {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err == nil && k.losses.short {
			t.Errorf("%s: the lease is still short", tt.name)
		}
	}
}

// The incarnation has answered since its earliest stamp, or since now; untracked, since its latest
// one, if nothing came between.
func TestEpochSince(t *testing.T) {
	at := func(d time.Duration) time.Time { return now.Add(d) }
	const extend = 10 * time.Second
	stamp := func(incarnation string, since, seen time.Duration) Record {
		return Record{Incarnation: incarnation, Since: at(since), Seen: at(seen)}
	}
	aside := func(r Record, offset time.Duration) Record {
		r.Offset = offset
		return r
	}
	for _, tt := range []struct {
		name      string
		untracked bool
		records   []Record
		want      time.Duration
	}{
		{"no stamp", false, nil, 0},
		{"the earliest", false, []Record{stamp("a", -time.Minute, 0), stamp("a", -time.Hour, 0)}, -time.Hour},
		{"others do not count", false, []Record{stamp("b", -time.Hour, 0)}, 0},
		{"no stamp", true, nil, 0},
		{"the latest", true, []Record{stamp("a", -time.Minute, -extend), stamp("a", -time.Hour, 0)}, -time.Minute},
		{"no gap", true, []Record{stamp("a", -time.Hour, -2*extend)}, -time.Hour},
		{"a gap", true, []Record{stamp("a", -time.Hour, -2*extend-1)}, 0},
		{"no gap by the machines' clocks", true, []Record{aside(stamp("a", -time.Hour, -extend), -extend)}, -time.Hour},
		{"a gap by the machines' clocks", true, []Record{aside(stamp("a", -time.Hour, -extend), -extend-1)}, 0},
		{"no gap by the registry's clock", true, []Record{aside(stamp("a", -time.Hour, -2*extend), extend)}, -time.Hour},
		{"a gap by the registry's clock", true, []Record{aside(stamp("a", -time.Hour, -2*extend-1), extend)}, 0},
		{"another wrote since", true, []Record{stamp("a", -time.Hour, 0), stamp("b", -time.Hour, -time.Minute)}, -time.Minute},
		{"another wrote before", true, []Record{stamp("a", -time.Hour, 0), stamp("b", -3*time.Hour, -2*time.Hour)}, -time.Hour},
		{"an unstamped write", true, []Record{stamp("a", -time.Hour, 0), stamp("", 0, -time.Minute)}, -time.Hour},
		{"from the future", true, []Record{stamp("a", -time.Hour, 0), stamp("a", -time.Minute, DefaultTolerance+1)}, -time.Hour},
		{"by the tolerance", true, []Record{stamp("a", -time.Hour, 0), stamp("a", -time.Minute, DefaultTolerance)}, -time.Minute},
	} {
		k := stillKeeper(t, Options{Extend: extend})
		v := lossyView("a")
		v.epoch.Untracked, v.records = tt.untracked, map[int64]Record{}
		for i, r := range tt.records {
			v.records[int64(i)] = r
		}
		if got := k.losses.epochSince(v); !got.Equal(at(tt.want)) {
			t.Errorf("%s (untracked: %v): since %v, want %v", tt.name, tt.untracked, got.Sub(now), tt.want)
		}
		if k.losses.noteEpoch(v); !k.Status().IncarnationSince.Equal(at(tt.want)) || k.Status().Incarnation != "a" {
			t.Errorf("%s: the status says %+v", tt.name, k.Status())
		}
		v.records = nil // the keeper knows it from now on
		if got := k.losses.epochSince(v); !got.Equal(at(tt.want)) {
			t.Errorf("%s (untracked: %v): without the records since %v", tt.name, tt.untracked, got.Sub(now))
		}
	}
}

// A silence lasts up to the first question after it, and begins with the first question of the look
// before: another server may have answered in between. An unknown incarnation has answered since now.
func TestSilenceCountsFromTheQuestion(t *testing.T) {
	const extend, age = 10 * time.Second, 3 * time.Second
	for _, tt := range []struct {
		after   time.Duration
		silence bool
	}{{2*extend - age, false}, {2*extend - age + time.Millisecond, true}} {
		k := stillKeeper(t, Options{Extend: extend})
		v := lossyView("a")
		v.epoch.Untracked, v.age = true, age
		v.records = map[int64]Record{0: {Incarnation: "a", Since: now.Add(-time.Hour), Seen: now}}
		k.losses.noteEpoch(v)
		var r Record
		if k.stamp(&r, v); r.Incarnation != "a" || !r.Seen.Equal(now.Add(-age)) {
			t.Errorf("stamped with %+v", r)
		}
		for _, records := range []map[int64]Record{nil, {0: r}} { // known to the keeper, then by its stamp alone
			next := lossyView("a")
			next.epoch.Untracked, next.records, next.registry = true, records, now.Add(tt.after)
			if since := k.losses.epochSince(next); since.Equal(next.registry) != tt.silence {
				t.Errorf("%d records, after %v: since %v", len(records), tt.after, since.Sub(now))
			}
			k.losses.known = span{}
			next.epoch.Incarnation = ""
			if since := k.losses.epochSince(next); !since.Equal(next.registry) {
				t.Errorf("an unknown incarnation has answered since %v", since.Sub(now))
			}
		}
		look := lossyView("")
		look.age = age
		_, _ = k.losses.claimFloor(look, Record{})
		look.age, look.registry = 0, now.Add(tt.after)
		if _, _ = k.losses.claimFloor(look, Record{}); k.losses.unnamed.since.Equal(look.registry) != tt.silence {
			t.Errorf("unnamed, after %v: since %v", tt.after, k.losses.unnamed.since.Sub(now))
		}
	}
}

// A keeper stamps by the view in which it saw the incarnation, with a right clock, and keeps the
// larger claim delay.
func TestStamp(t *testing.T) {
	var log bytes.Buffer
	k := stillKeeper(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Owner: "n", Health: func() string { return "fine\xff" }})
	stamp := func(v view) (r Record) {
		r.Incarnation, r.Since, r.ClaimDelay = "earlier", now, time.Minute
		k.stamp(&r, v)
		return r
	}
	off := lossyView("a")
	off.offset = k.opts.Tolerance + 1
	unnamed, safe := lossyView(""), lossyView("a")
	safe.epoch.Lossy = false
	for _, v := range []view{off, unnamed, safe} {
		k.losses.noteEpoch(v)
		if r := stamp(v); r.Incarnation != "" || !r.Since.IsZero() {
			t.Errorf("stamped %+v by %+v", r, v)
		}
	}
	v := lossyView("a")
	v.offset = k.opts.Tolerance
	k.losses.noteEpoch(v)
	k.losses.noteEpoch(v)
	k.losses.noteEpoch(unnamed)
	if r := stamp(v); r.Incarnation != "a" || !r.Since.Equal(now) || r.Owner != "n fine?" || !r.Seen.Equal(now) || r.Offset != v.offset || r.ClaimDelay != time.Minute {
		t.Errorf("stamped %+v", r)
	}
	k.losses.delay = time.Hour
	if r := stamp(v); r.ClaimDelay != time.Hour {
		t.Errorf("a claim delay of %v", r.ClaimDelay)
	}
	later := v
	later.registry = now.Add(1)
	if r := stamp(later); r.Incarnation != "" {
		t.Error("stamped by a view without a look at the incarnation")
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", &log)
	}
	k.losses.noteEpoch(lossyView("b"))
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "before=a") {
		t.Errorf("after a fail-over: %s", &log)
	}
}

// All nodes follow the largest claim delay. One that needs more claims nothing, unless an operator
// raises it.
func TestCheckDelay(t *testing.T) {
	const needed = 27 * time.Second
	for _, tt := range []struct {
		name        string
		lossy       bool
		own         time.Duration // 0: the default
		kept        []time.Duration
		want        time.Duration
		err, raised bool
	}{
		{"loses nothing", false, 0, []time.Duration{time.Second}, 0, false, false},
		{"the first", true, 0, []time.Duration{0, 0}, needed, false, false},
		{"equal", true, 0, []time.Duration{needed}, needed, false, false},
		{"the registry's is longer", true, 0, []time.Duration{time.Second, time.Hour, 0}, time.Hour, false, false},
		{"the registry's is shorter", true, 0, []time.Duration{needed - time.Millisecond}, 0, true, false},
		{"raised", true, time.Minute + time.Microsecond, []time.Duration{needed}, time.Minute, false, true},
		{"raised before", true, time.Minute + time.Microsecond, []time.Duration{time.Minute}, time.Minute, false, false},
	} {
		var log bytes.Buffer
		k := stillKeeper(t, Options{ClaimDelay: tt.own, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		v := lossyView("a")
		v.epoch.Lossy, v.records = tt.lossy, map[int64]Record{}
		for i, delay := range tt.kept {
			v.records[int64(i)] = Record{ClaimDelay: delay}
		}
		if err := k.losses.checkDelay(v); errors.Is(err, ErrClaimDelay) != tt.err || k.losses.delay != tt.want || k.Status().ClaimDelay != tt.want {
			t.Errorf("%s: %v, %v", tt.name, k.losses.delay, err)
		}
		if raised := strings.Contains(log.String(), "is raised"); raised != tt.raised {
			t.Errorf("%s: logged %s", tt.name, &log)
		}
	}
}

// A claim counts once the incarnation has answered for the claim delay. Without a known incarnation
// looks without a gap have to show it.
func TestClaimFloor(t *testing.T) {
	const delay, extend = 20 * time.Second, 2 * time.Second
	c := &stillClock{wall: now}
	k := c.keeper(t, nil, Options{ClaimDelay: delay, Extend: extend})
	if err := k.losses.checkDelay(lossyView("a")); err != nil {
		t.Fatal(err)
	}
	behind := time.Duration(0) // this machine's clock
	look := func(v view, after time.Duration) (time.Time, error) {
		c.mono = after - behind
		v.registry, v.at = now.Add(after), c.mono
		return k.losses.claimFloor(v, Record{Worker: 5})
	}
	counts := func(name string, v view, after, floor time.Duration) {
		t.Helper()
		if got, err := look(v, after); err != nil || !got.Equal(now.Add(floor)) {
			t.Errorf("%s: from %v on, %v", name, got.Sub(now), err)
		}
	}
	waits := func(name string, v view, after, wait time.Duration) {
		t.Helper()
		_, err := look(v, after)
		if early, ok := errors.AsType[*notYet](err); !ok || !errors.Is(err, ErrWaiting) || early.at.Sub(k.clock.milli()) != wait {
			t.Errorf("%s: %v, want a wait of %v", name, err, wait)
		}
	}
	const ms = time.Millisecond
	named, unnamed := lossyView("a"), lossyView("")
	waits("the first look", unnamed, 0, delay)
	for after := 2 * extend; after < delay; after += 2 * extend {
		waits("while it looks", unnamed, after, delay-after)
	}
	counts("after looks without a gap", unnamed, delay, delay)
	waits("after a gap", unnamed, delay+2*extend+ms, delay)
	unnamed.offset = 2*extend - ms
	waits("no gap by this machine's clock", unnamed, delay+2*extend+2*ms, delay-ms)
	unnamed.offset = 4 * extend
	waits("a gap by this machine's clock", unnamed, delay+2*extend+2*ms, delay)
	unnamed.offset = 0
	k.losses.claimed(unnamed, Record{})
	waits("another claim", unnamed, delay+2*extend+2*ms, delay)
	k.losses.known = span{incarnation: "a", since: now.Add(delay)}
	waits("just before", named, 2*delay-ms, ms)
	counts("then", named, 2*delay, 2*delay)
	behind = ms
	waits("not by this machine's clock", named, 2*delay, ms)
	behind, named.late = 0, ms
	waits("the registry's time may be too late", named, 2*delay, ms)
	named.late = 0
	waits("the name is unknown again", unnamed, 2*delay+ms, delay-ms)
	named.offset = k.opts.Tolerance + 1
	if _, err := look(named, 2*delay); !errors.Is(err, ErrClockOff) {
		t.Errorf("with a wrong clock: %v", err)
	}
	unnamed.epoch.Lossy = false
	if floor, err := look(unnamed, 0); err != nil || !floor.IsZero() {
		t.Errorf("where nothing is lost: %v, %v", floor, err)
	}
}

// A lease is safe up to the claim delay less the tolerance after its last write, by the slower one of
// two clocks, and up to its horizon.
func TestSafeUntil(t *testing.T) {
	const delay = 100 * time.Second
	for _, tt := range []struct {
		name            string
		lossy           bool
		horizon, offset time.Duration
		want            time.Duration
	}{
		{"loses nothing", false, time.Hour, 0, time.Hour},
		{"loses writes", true, time.Hour, 0, delay - DefaultTolerance},
		{"this clock is behind", true, time.Hour, -time.Second, delay - DefaultTolerance - time.Second},
		{"this clock is ahead", true, time.Hour, time.Second, delay - DefaultTolerance},
		{"the horizon", true, time.Second, 0, time.Second},
	} {
		k := stillKeeper(t, Options{ClaimDelay: delay})
		v := lossyView("a")
		v.epoch.Lossy = tt.lossy
		r := Record{Horizon: now.Add(tt.horizon), Seen: now, Offset: tt.offset}
		k.losses.claimed(v, r)
		if got := k.losses.safe.load().time.Sub(now); got != tt.want {
			t.Errorf("%s: safe for %v, want %v", tt.name, got, tt.want)
		}
		if got := k.losses.confirm(v, r, now.Add(-time.Hour)).Sub(now); got != tt.want || k.losses.short != tt.lossy {
			t.Errorf("%s: confirmed for %v", tt.name, got)
		}
		if got := k.losses.confirm(v, r, now.Add(delay)).Sub(now); tt.lossy && got != delay {
			t.Errorf("%s: confirmed up to %v, below its floor", tt.name, got)
		}
	}
	k := stillKeeper(t, Options{ClaimDelay: 2 * time.Second}) // an operator wants it shorter than holders need
	if got := k.losses.confirm(lossyView("a"), Record{Horizon: now.Add(time.Hour)}, now); !got.Equal(now.Add(time.Hour)) || k.losses.short {
		t.Errorf("confirmed up to %v", got.Sub(now))
	}
}

// Where a time in a view may be too early, the latest one decides whether a lease has run out.
func TestLatestTimeDecides(t *testing.T) {
	k := (&stillClock{wall: now}).keeper(t, epochs{nil, ServerEpoch{Lossy: true, Incarnation: "b"}, nil}, Options{})
	k.losses.safe.store(now.Add(time.Second), "a")
	end := Record{Horizon: now.Add(time.Second), Incarnation: "a", ClaimDelay: time.Hour}
	near := Record{Horizon: end.Horizon.Add(DefaultTolerance)}
	for _, slack := range []time.Duration{time.Second - time.Millisecond, time.Second} {
		v := lossyView("a")
		v.slack, k.losses.short = slack, true
		over := slack == time.Second
		for what, err := range map[string]error{
			"a lease": k.losses.checkHorizon(v, end, true), "a short lease": k.losses.checkAlone(v, end, end),
			"a renewal": (&renewal{Keeper: k, limit: end.Horizon}).counts(v, end),
		} {
			if (err != nil) != over {
				t.Errorf("%s, %v late: %v", what, slack, err)
			}
		}
		k.losses.short = false
		if err := k.losses.checkServer(t.Context(), &v, near); err != nil || (v.epoch.Incarnation == "") != over {
			t.Errorf("%v late: incarnation %q, %v", slack, v.epoch.Incarnation, err)
		}
	}
}

// Wherever the process is paused while it asks for the time, or after that, the latest time is not too
// early, also where the machine was suspended and its monotonic clock stood still.
func TestLatestTimeCountsEachPause(t *testing.T) {
	const pause = time.Minute
	for i := range 2 * 14 {
		c := &stillClock{wall: now.Add(999 * time.Microsecond)}
		looks, pausedAt, suspended := 0, i/2, i%2 == 0
		look := func() {
			if looks++; looks == pausedAt {
				if c.wall = c.wall.Add(pause); !suspended {
					c.mono += pause
				}
			}
		}
		server := func() time.Time { look(); return c.wall }
		var begun time.Time
		reg := timed{asking{&scripted{}, func() (ServerEpoch, error) { begun = c.wall; return ServerEpoch{}, nil }}, server}
		k, err := NewKeeper(reg, &Options{Clock: NewClockFrom(
			func() time.Time { defer look(); return c.wall }, func() time.Duration { defer look(); return c.mono })})
		if err != nil {
			t.Fatal(err)
		}
		v, err := k.readClock(t.Context())
		if v.asked().After(begun) || k.earliest(v).After(c.wall) {
			t.Errorf("paused at look %d, suspended %v: asked %v too late, now %v too late", pausedAt, suspended, v.asked().Sub(begun), k.earliest(v).Sub(c.wall))
		}
		for range 2 {
			asked := c.wall
			if latest := k.latest(v); err != nil || latest.Before(asked) {
				t.Errorf("paused at look %d, suspended %v: %v too early, %v", pausedAt, suspended, asked.Sub(latest), err)
			}
			c.wall = c.wall.Add(pause) // suspended afterwards
		}
	}
}
