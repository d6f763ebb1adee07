package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
)

// smallPool is a pool of four worker IDs.
var smallPool = Pool{Name: "p", Layout: ServedLayout{Epoch: 1, Tick: 1, TimeBits: 41, WorkerBits: 2, SequenceBits: 12}, MaxTTL: time.Minute, ClaimDelay: time.Minute + DefaultTolerance}

// firstPool is the first cell of the first pool.
const firstPool = int64(1) << poolShift

// pools returns the pools of a registry with smallPool, whose clock says now.
func (c *stillClock) pools(t testing.TB, r *scripted) *Pools {
	t.Helper()
	r.clock = now
	r.put(Record{Worker: firstPool | poolDefinition, Instance: Instance{9}, Term: 1, Horizon: now, Pool: smallPool})
	p, err := NewPools(r, &Options{Owner: "n", Clock: NewClockFrom(func() time.Time { return c.wall }, func() time.Duration { return c.mono })})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The bounds of a pool's values, and its defaults.
func TestPoolBounds(t *testing.T) {
	const tolerance = DefaultTolerance
	full := smallPool
	full.Layout.SequenceBits = 20 // 63 bits
	for _, tt := range []struct {
		name   string
		change func(p *Pool)
		want   string // of the error
	}{
		{"all bits", func(*Pool) {}, ""},
		{"a bit more", func(p *Pool) { p.Layout.SequenceBits++ }, "are more than 63"},
		{"the longest name", func(p *Pool) { p.Name = strings.Repeat("x", 128) }, ""},
		{"a longer name", func(p *Pool) { p.Name = strings.Repeat("x", 129) }, "a pool's name"},
		{"31 worker bits", func(p *Pool) { p.Layout.WorkerBits, p.Layout.SequenceBits, p.Layout.TimeBits = 31, 0, 32 }, ""},
		{"32 worker bits", func(p *Pool) { p.Layout.WorkerBits, p.Layout.SequenceBits, p.Layout.TimeBits = 32, 0, 31 }, "a pool has 1 to 31 worker bits, not 32"},
		{"one worker bit", func(p *Pool) { p.Layout.WorkerBits = 1 }, ""},
		{"no worker bit", func(p *Pool) { p.Layout.WorkerBits = 0 }, "a pool has 1 to 31 worker bits, not 0"},
		{"negative sequence bits", func(p *Pool) { p.Layout.SequenceBits = -1 }, "-1 sequence bits"},
		{"negative time bits", func(p *Pool) { p.Layout.TimeBits = -1 }, "-1 time"},
		{"no tick", func(p *Pool) { p.Layout.Tick = 0 }, "a tick of 0 ms"},
		{"a second", func(p *Pool) { p.MaxTTL = time.Second }, ""},
		{"less", func(p *Pool) { p.MaxTTL = time.Second - time.Millisecond }, "a longest TTL of 999ms"},
		{"a day", func(p *Pool) { p.MaxTTL, p.ClaimDelay = MaxTTL, 0 }, ""},
		{"more", func(p *Pool) { p.MaxTTL, p.ClaimDelay = MaxTTL+time.Millisecond, 0 }, "a longest TTL of 24h0m0.001s"},
		{"a short claim delay", func(p *Pool) { p.ClaimDelay -= time.Millisecond }, "a claim delay of 1m4.999s: leases of 1m0s need at least 1m5s"},
	} {
		p := full
		tt.change(&p)
		_, err := p.complete(tolerance)
		if (err != nil) != (tt.want != "") || err != nil && (!errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, tt := range []struct{ ttl, delay, wantTTL, wantDelay time.Duration }{
		{0, 0, defaultMaxTTL, defaultMaxTTL + tolerance},
		{time.Minute + 1, 0, time.Minute, time.Minute + tolerance},
		{0, time.Hour, time.Hour - tolerance, time.Hour},
		{0, 48 * time.Hour, MaxTTL, 48 * time.Hour},
		{time.Minute, time.Hour, time.Minute, time.Hour},
	} {
		p := smallPool
		p.MaxTTL, p.ClaimDelay, p.Layout.Name, p.Layout.TimeBits = tt.ttl, tt.delay, "x", 0
		got, err := p.complete(tolerance)
		want := p
		want.MaxTTL, want.ClaimDelay, want.Layout.Name, want.Layout.TimeBits = tt.wantTTL, tt.wantDelay, "", 49
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%+v: %v\n%s", tt, err, diff)
		}
	}
}

// A layout has IDs from its epoch on, up to the tick that its time bits hold.
func TestLayoutHasTime(t *testing.T) {
	l := ServedLayout{Epoch: now.UnixMilli(), Tick: 1000, TimeBits: 4}
	for after, want := range map[time.Duration]string{
		0: "", 16*time.Second - time.Millisecond: "",
		-time.Millisecond: "the epoch 2027-01-15T08:00:00Z is in the future",
		16 * time.Second:  "4 time bits, so its last ID is of 2027-01-15T08:00:16Z",
	} {
		if err := l.checkTime(now.Add(after)); (err == nil) != (want == "") || err != nil && (!errors.Is(err, leaf.ErrInvalid) || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%v after the epoch: %v", after, err)
		}
	}
}

// The cells of pools and of servers do not mix.
func TestPoolCells(t *testing.T) {
	r := &scripted{}
	p := (&stillClock{wall: now}).pools(t, r)
	for _, cell := range []int64{3, firstPool, firstPool | 2, 2*firstPool | 1} {
		r.put(Record{Worker: cell, Instance: Instance{1}, Term: 2, Horizon: now.Add(time.Minute), Seen: now, Owner: "n lease of web"})
	}
	other := smallPool
	other.Name = "a"
	r.put(Record{Worker: 2*firstPool | poolDefinition, Horizon: now, Pool: other})
	for cell, in := range map[int64]bool{0: false, firstPool - 1: false, firstPool: true} {
		if got := (Record{Worker: cell}).InPool(); got != in {
			t.Errorf("cell %d is a pool's: %v", cell, got)
		}
	}
	if pools, err := p.List(t.Context()); err != nil || !slices.Equal(pools, []Pool{other, smallPool}) {
		t.Errorf("%+v, %v", pools, err)
	}
	workers, err := p.Workers(t.Context(), "p")
	want := []PoolWorker{{0, true, "web", 2, now.Add(time.Minute), now}, {2, true, "web", 2, now.Add(time.Minute), now}}
	if diff := cmp.Diff(want, workers); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, name := range []string{"nothing", ""} {
		if _, err := p.Workers(t.Context(), name); !errors.Is(err, ErrNoPool) {
			t.Errorf("workers of %q: %v", name, err)
		}
	}
	third := smallPool
	third.Name = "third"
	if _, err := p.Create(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	created := r.records[3*firstPool|poolDefinition]
	if !created.Held() || created.Term != 1 || !created.Horizon.Equal(now) || created.Pool != third {
		t.Errorf("created %+v", created)
	}
	k := (&stillClock{wall: now}).keeper(t, r, Options{})
	if v, err := k.readAll(t.Context()); err != nil || len(v.records) != 1 || !v.registry.Equal(now) || v.own {
		t.Errorf("a server sees %+v, %v", v, err)
	}
}

// The callers of pools learn that the registry does not answer.
func TestPoolsWithoutRegistry(t *testing.T) {
	r := &scripted{}
	p := (&stillClock{wall: now}).pools(t, r)
	r.list = func() error { return errDown }
	_, create := p.Create(t.Context(), smallPool)
	_, list := p.List(t.Context())
	_, workers := p.Workers(t.Context(), "p")
	_, claim := p.Claim(t.Context(), PoolClaim{Pool: "p"})
	for call, err := range map[string]error{"Create": create, "List": list, "Workers": workers, "Claim": claim} {
		if !errors.Is(err, errDown) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

// A claim tries a few worker IDs of a large pool.
func TestPoolClaimTries(t *testing.T) {
	large := smallPool
	large.Layout.WorkerBits = 5
	r := &scripted{}
	p := (&stillClock{wall: now}).pools(t, r)
	r.put(Record{Worker: firstPool | poolDefinition, Pool: large})
	r.swap = r.rival
	if _, err := p.Claim(t.Context(), PoolClaim{Pool: "p"}); !errors.Is(err, ErrConflict) || len(r.swapped) != maxRivals {
		t.Errorf("%v after %d swaps", err, len(r.swapped))
	}
}

// A creation that loses a race reads again, and finds the other one's pool.
func TestCreateAfterAnother(t *testing.T) {
	other := smallPool
	other.MaxTTL = 2 * time.Second
	for want, winner := range map[error]Pool{nil: smallPool, ErrPoolExists: other} {
		r := &scripted{clock: now}
		p := (&stillClock{wall: now}).pools(t, r)
		delete(r.records, firstPool|poolDefinition)
		r.swap = func(old, _ Record) error {
			r.put(Record{Worker: old.Worker, Instance: Instance{2}, Term: 1, Horizon: now, Pool: winner})
			return ErrConflict
		}
		if got, err := p.Create(t.Context(), smallPool); !errors.Is(err, want) || err == nil && got != smallPool {
			t.Errorf("got %+v, %v, want %v", got, err, want)
		}
	}
	r := &scripted{clock: now}
	p := (&stillClock{wall: now}).pools(t, r)
	delete(r.records, firstPool|poolDefinition)
	r.swap = func(old, _ Record) error {
		other.Name = fmt.Sprint("p", len(r.swapped))
		r.put(Record{Worker: old.Worker, Instance: Instance{2}, Term: 1, Horizon: now, Pool: other})
		return ErrConflict
	}
	if _, err := p.Create(t.Context(), smallPool); !errors.Is(err, ErrConflict) || len(r.swapped) != maxRivals {
		t.Errorf("after %d swaps: %v", len(r.swapped), err)
	}
	r.swap = func(_, _ Record) error { return errDown }
	if _, err := p.Create(t.Context(), smallPool); !errors.Is(err, errDown) {
		t.Errorf("without an answer: %v", err)
	}
}

// A lease has the values of its claim. Another program's swap comes first, or the registry fails.
func TestClaimOfPool(t *testing.T) {
	claim := func(p *Pools, c PoolClaim) (PoolLease, error) {
		c.Pool = "p"
		return p.Claim(t.Context(), c)
	}
	r := &scripted{}
	p := (&stillClock{wall: now.Add(time.Second)}).pools(t, r)
	for cell := range int64(3) {
		r.put(Record{Worker: firstPool | cell, Horizon: now.Add(time.Hour)})
	}
	last := Record{Worker: firstPool | 3, Term: 7, Horizon: now.Add(-time.Hour)}
	r.put(last)
	if _, err := claim(p, PoolClaim{Holder: strings.Repeat("x", maxHolder+1)}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a long holder: %v", err)
	}
	layout := smallPool.Layout
	layout.Name = "the program's"
	l, err := claim(p, PoolClaim{Holder: strings.Repeat("x", maxHolder-1) + "\xff", Layout: layout})
	got := r.records[last.Worker]
	want := Record{Worker: last.Worker, Instance: got.Instance, Term: 8, Horizon: now.Add(time.Minute), Floor: now.Add(-DefaultTolerance),
		Owner: "n lease of " + strings.Repeat("x", maxHolder-1) + "?", Seen: now, Offset: time.Second}
	if !got.Equal(want) || !got.Held() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if err != nil || l != (PoolLease{smallPool, 3, want.Floor, want.Horizon, now, last.Worker, got.Instance}) {
		t.Errorf("%+v, %v", l, err)
	}
	if at := l.RenewAt(); !at.Equal(now.Add(20 * time.Second)) {
		t.Errorf("renew it after %v", at.Sub(now))
	}
	_, err = claim(p, PoolClaim{})
	if early, ok := errors.AsType[*notYet](err); !ok || !errors.Is(err, ErrNoneFree) || !early.at.Equal(now.Add(time.Minute)) || !strings.Contains(err.Error(), "all 4 of pool") {
		t.Errorf("a full pool: %v", err)
	}
	r.put(last)
	r.swap = func(_, _ Record) error { return errDown }
	if _, err = claim(p, PoolClaim{}); !errors.Is(err, errDown) || errors.Is(err, ErrConflict) {
		t.Errorf("without an answer: %v", err)
	}
	for cell := range int64(3) {
		delete(r.records, firstPool|cell)
	}
	r.swap = func(old, _ Record) error {
		r.put(Record{Worker: old.Worker, Term: 9})
		return ErrConflict
	}
	r.swapped = nil
	if _, err = claim(p, PoolClaim{}); !errors.Is(err, ErrConflict) || len(r.swapped) != 4 {
		t.Errorf("others were faster %d times: %v", len(r.swapped), err)
	}
	later := now.Add(time.Hour)
	r.swap = nil
	r.put(Record{Worker: firstPool, Term: 9, Horizon: now})
	r.put(Record{Worker: firstPool | 1, Horizon: later})
	r.put(Record{Worker: firstPool | 2, Horizon: later})
	r.put(Record{Worker: firstPool | 3, Horizon: later})
	if l, err = claim(p, PoolClaim{TTL: time.Second}); err != nil || !l.Floor.Equal(now) || !l.Limit.Equal(now.Add(time.Second)) {
		t.Errorf("above an earlier lease: %+v, %v", l, err)
	}
}

// How long a lease may be, by its pool, the server and the registry.
func TestPoolLimit(t *testing.T) {
	lossy, behind := lossyView("a"), lossyView("a")
	behind.offset = -2 * time.Second
	for _, tt := range []struct {
		name      string
		v         view
		ttl, most time.Duration
		tolerance time.Duration
		want      time.Duration
		err       error
	}{
		{"the default", view{}, 0, time.Hour, 0, DefaultTTL, nil},
		{"the pool's", view{}, 0, time.Minute, 0, time.Minute, nil},
		{"the shortest", view{}, time.Second, time.Minute, 0, time.Second, nil},
		{"shorter", view{}, time.Second - 1, time.Minute, 0, 0, leaf.ErrInvalid},
		{"the longest", view{}, time.Minute, time.Minute, 0, time.Minute, nil},
		{"longer", view{}, time.Minute + 1, time.Minute, 0, 0, leaf.ErrInvalid},
		{"a wrong clock", view{offset: DefaultTolerance + 1}, time.Minute, time.Minute, 0, 0, ErrClockOff},
		{"the claim delay", lossy, time.Minute, time.Minute, 30 * time.Second, 35 * time.Second, nil},
		{"a second is left", lossy, time.Minute, time.Minute, 64 * time.Second, time.Second, nil},
		{"less", lossy, time.Minute, time.Minute, 64*time.Second + 1, 0, leaf.ErrUnsupported},
		{"a clock behind that of a server that may be lost", behind, time.Minute, time.Minute, 0, 58 * time.Second, nil},
		{"no incarnation", lossyView(""), time.Minute, time.Minute, 0, 0, leaf.ErrUnsupported},
	} {
		k := stillKeeper(t, Options{Tolerance: tt.tolerance})
		pool := smallPool
		pool.MaxTTL, tt.v.registry = tt.most, now
		limit, err := k.limit(tt.v, pool, tt.ttl)
		if !errors.Is(err, tt.err) || err == nil && limit.Sub(now) != tt.want {
			t.Errorf("%s: %v, %v", tt.name, limit.Sub(now), err)
		}
	}
}

// When a renewal counts.
func TestRenewalCounts(t *testing.T) {
	for _, tt := range []struct {
		name                string
		lossy, untracked    bool
		written             string
		left                time.Duration // of the lease
		counts, tookAnother bool
	}{
		{"in time", false, false, "", 1, true, false},
		{"too late", false, false, "", 0, false, false},
		{"an old stamp where nothing is lost", false, false, "b", 1, true, false},
		{"in time on a lossy registry", true, false, "a", 1, true, false},
		{"by another incarnation", true, false, "b", time.Hour, false, true},
		{"untracked", true, true, "a", DefaultTolerance + 1, true, false},
		{"untracked, too late", true, true, "a", DefaultTolerance, false, false},
	} {
		r := renewal{Keeper: stillKeeper(t, Options{}), limit: now.Add(tt.left)}
		v := lossyView("a")
		v.epoch.Lossy, v.epoch.Untracked = tt.lossy, tt.untracked
		err := r.counts(v, Record{Incarnation: tt.written})
		if (err == nil) != tt.counts || err != nil && !errors.Is(err, ErrLeaseLost) || tt.tookAnother != strings.Contains(fmt.Sprint(err), "taken over") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// A renewal whose answers are missing writes once more, and says why it failed.
func TestRenewFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		errs   []error // of the swaps
		loads  []error
		want   []error
		not    error
		swaps  int
		extend time.Duration
	}{
		{"works", nil, nil, nil, nil, 1, time.Minute},
		{"the second works", []error{errDown}, nil, nil, nil, 2, time.Minute},
		{"both fail", []error{errDown, ErrStaleReads}, nil, []error{errDown, ErrStaleReads}, ErrLeaseLost, 2, 0},
		{"it is lost", []error{ErrConflict}, nil, []error{ErrLeaseLost}, ErrConflict, 1, 0},
		{"unreadable", nil, []error{errDown}, []error{errDown}, ErrLeaseLost, 0, 0},
		{"unreadable later", nil, []error{nil, errDown}, []error{errDown}, ErrLeaseLost, 0, 0},
	} {
		r := &scripted{}
		p := (&stillClock{wall: now}).pools(t, r)
		held := Record{Worker: firstPool | 2, Instance: Instance{1}, Term: 5, Horizon: now.Add(time.Second), Floor: now.Add(-time.Hour), Owner: "m lease of web"}
		r.put(held)
		id := (&PoolLease{cell: held.Worker, secret: held.Instance}).ID()
		r.swap = func(old, _ Record) (err error) {
			if len(tt.errs) > 0 {
				err, tt.errs = tt.errs[0], tt.errs[1:]
			}
			if errors.Is(err, ErrConflict) {
				r.put(Record{Worker: old.Worker, Instance: Instance{2}})
			}
			return err
		}
		r.load = func() (err error) {
			if len(tt.loads) > 0 {
				err, tt.loads = tt.loads[0], tt.loads[1:]
			}
			return err
		}
		l, err := p.Renew(t.Context(), id, time.Minute)
		for _, want := range tt.want {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", tt.name, err, want)
			}
		}
		if (err == nil) != (len(tt.want) == 0) || tt.not != nil && errors.Is(err, tt.not) || len(r.swapped) != tt.swaps {
			t.Errorf("%s: %v after %d swaps", tt.name, err, len(r.swapped))
		}
		if err == nil {
			want := held
			want.Horizon, want.Owner, want.Seen = now.Add(tt.extend), "n lease of web", now
			if got := r.records[held.Worker]; !got.Equal(want) || l != (PoolLease{smallPool, 2, held.Floor, want.Horizon, now, held.Worker, held.Instance}) {
				t.Errorf("%s: %+v, %+v", tt.name, got, l)
			}
		}
	}
}

// The lease of a pool without a definition is over: its layout is unknown.
func TestLeaseOfNoPool(t *testing.T) {
	r := &scripted{}
	p := (&stillClock{wall: now}).pools(t, r)
	delete(r.records, firstPool|poolDefinition)
	r.put(Record{Worker: firstPool, Instance: Instance{1}, Horizon: now.Add(time.Second)})
	if _, err := p.Renew(t.Context(), (&PoolLease{cell: firstPool, secret: Instance{1}}).ID(), 0); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("got %v", err)
	}
}

// A release that meets a renewal swaps again, twice at most.
func TestReleaseOfPool(t *testing.T) {
	for _, conflicts := range []int{0, 1, 2} {
		r := &scripted{}
		p := (&stillClock{wall: now}).pools(t, r)
		held := Record{Worker: firstPool, Instance: Instance{1}, Term: 5, Horizon: now.Add(time.Second), Floor: now.Add(-time.Hour)}
		r.put(held)
		r.swap = func(_, _ Record) error {
			if len(r.swapped) <= conflicts {
				return ErrConflict
			}
			return nil
		}
		used := now.Add(-time.Millisecond)
		err := p.Release(t.Context(), (&PoolLease{cell: firstPool, secret: Instance{1}}).ID(), used)
		if conflicts == 2 {
			if !errors.Is(err, ErrConflict) || len(r.swapped) != 2 {
				t.Errorf("after %d swaps: %v", len(r.swapped), err)
			}
			continue
		}
		if got := r.records[firstPool]; err != nil || got.Held() || !got.Horizon.Equal(now) || got.Term != 5 || len(r.swapped) != conflicts+1 {
			t.Errorf("released as %+v, %v", got, err)
		}
	}
}

// A grant whose registry ended between its claim and its answer goes back.
func TestGrantGoesBack(t *testing.T) {
	old := Record{Worker: firstPool, Term: 4, Horizon: now.Add(-time.Hour)}
	for name, tt := range map[string]struct {
		epoch ServerEpoch
		err   error
		want  error
	}{
		"the same server": {ServerEpoch{Lossy: true, Incarnation: "a"}, nil, nil},
		"another one":     {ServerEpoch{Lossy: true, Incarnation: "b"}, nil, ErrWaiting},
		"no answer":       {ServerEpoch{}, errDown, errDown},
		"loses nothing":   {ServerEpoch{}, nil, nil},
	} {
		r := &scripted{clock: now}
		p := (&stillClock{wall: now}).pools(t, r)
		p.reg = epochs{r, tt.epoch, tt.err}
		k := p.keeper("web")
		v := lossyView("a")
		k.losses.known = span{incarnation: "a", since: now.Add(-time.Hour), seen: now}
		got := Record{Worker: firstPool, Instance: Instance{1}, Term: 5, Horizon: now.Add(time.Minute), Floor: now.Add(-DefaultTolerance)}
		r.put(got)
		l, err := k.grant(t.Context(), v, smallPool, bid{old, got}, got)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || err == nil && (l.Worker != 0 || !l.Floor.Equal(got.Floor)) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		back := r.records[firstPool]
		if err != nil && (back.Held() || !back.Horizon.Equal(old.Horizon) || back.Term != 5) || err == nil && !back.Held() {
			t.Errorf("%s: the record is %+v", name, back)
		}
	}
}

// An epochs is a scripted registry that may lose writes.
type epochs struct {
	*scripted
	epoch ServerEpoch
	err   error
}

func (r epochs) ServerEpoch(context.Context) (ServerEpoch, error) { return r.epoch, r.err }

// A claim never lowers a horizon: a worker ID is free once its last lease has ended by the time that the
// next limit counts from.
func TestPoolCandidatesHaveEnded(t *testing.T) {
	k, v := stillKeeper(t, Options{}), lossyView("a")
	v.records = map[int64]Record{}
	for id := range smallPool.Layout.MaxWorker() + 1 {
		v.records[firstPool+id] = Record{Worker: firstPool + id, Horizon: now.Add(-time.Second)}
	}
	for _, tt := range []struct {
		offset, late time.Duration
		lossy, free  bool
	}{
		{0, 0, true, true},
		{time.Minute, 0, true, true},
		{-time.Second, 0, true, true},
		{-time.Second - 1, 0, true, false},
		{-time.Minute, 0, false, true},
		{0, time.Second, false, true},
		{0, time.Second + 1, false, false},
	} {
		v.offset, v.late, v.epoch.Lossy = tt.offset, tt.late, tt.lossy
		if _, err := k.poolCandidates(v, smallPool, firstPool>>poolShift); errors.Is(err, ErrNoneFree) == tt.free {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}
