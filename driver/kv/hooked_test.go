package kv_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A hooked backend calls a function before each call of a cell, and logs it. An error of the
// function is that of the call.
type hooked struct {
	*memory.Backend
	before func(ctx context.Context, call string) error
	log    []string
	olds   []kv.Cell // of the swaps
	closed int
	end    error // of Close
}

func (b *hooked) hook(ctx context.Context, call string) error {
	b.log = append(b.log, call)
	if b.before == nil {
		return nil
	}
	return b.before(ctx, call)
}

func (b *hooked) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	if err := b.hook(ctx, "get "+key.String()); err != nil {
		return kv.Cell{}, err
	}
	return b.Backend.Get(ctx, key)
}

func (b *hooked) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	b.olds = append(b.olds, old)
	if err := b.hook(ctx, "swap "+old.Key.String()); err != nil {
		return old, err
	}
	return b.Backend.Swap(ctx, old, value)
}

func (b *hooked) Close() error {
	b.closed++
	return b.end
}

// count returns how often a call was made, and begins again.
func (b *hooked) count(call string) (n int) {
	for _, c := range b.log {
		if c == call {
			n++
		}
	}
	b.log = nil
	return n
}

// A complete backend has all that backends may have, and may be told to fail in each.
type complete struct{ *breaking }

func (b complete) try() error {
	if b.fails() {
		return errBroken
	}
	return nil
}

func (b complete) String() string              { return "the complete backend" }
func (b complete) KeyName(key kv.Key) string   { return "row " + key.Name }
func (b complete) Check(context.Context) error { return b.try() }

func (b complete) Prepare(context.Context) error { return b.try() }

func (b complete) ServerEpoch(context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{Lossy: true, Incarnation: "first"}, b.try()
}

func (b complete) Add(ctx context.Context, key kv.Key, n int64) (kv.Cell, int64, error) {
	if err := b.try(); err != nil {
		return kv.Cell{}, 0, err
	}
	return adding{Backend: b.Backend}.Add(ctx, key, n)
}

// set writes a cell as another program does.
func set(t testing.TB, b *memory.Backend, key kv.Key, text string) {
	t.Helper()
	old, err := b.Get(context.Background(), key)
	if err == nil {
		_, err = b.Swap(context.Background(), old, text)
	}
	if err != nil {
		t.Error(err)
	}
}

func value(t testing.TB, b *memory.Backend, key kv.Key) string {
	t.Helper()
	cell, err := b.Get(context.Background(), key)
	if err != nil {
		t.Error(err)
	}
	return cell.Value
}

var (
	orderKey  = kv.Key{Kind: kv.Tags, Name: "order"}
	tagMarker = kv.Key{Kind: kv.Format, Name: "tags"}
	regMarker = kv.Key{Kind: kv.Format, Name: "workers"}
	ticket    = segment.Tag{Name: "ticket", Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrictLossy}}
)

// A backend with all optional parts passes on what they say, and each of their failures.
func TestOptionalParts(t *testing.T) {
	calls := maps.Clone(inUse)
	calls["AdvanceStrict"] = func(ctx context.Context, db *kv.DB) error {
		_, err := db.Store().AdvanceStrict(ctx, "ticket", 5)
		return err
	}
	calls["ServerEpoch"] = func(ctx context.Context, db *kv.DB) error {
		epoch, err := db.Registry().ServerEpoch(ctx)
		if err == nil && epoch != (worker.ServerEpoch{Lossy: true, Incarnation: "first"}) {
			err = fmt.Errorf("epoch %+v", epoch)
		}
		return err
	}
	without := func(*testing.T, *memory.Backend) {}
	created := func(t *testing.T, cells *memory.Backend) {
		newStore(t, cells, order, ticket)
		if err := open(t, cells).InitRegistry(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	older := func(t *testing.T, cells *memory.Backend) { // no cell has the identity of the store
		created(t, cells)
		set(t, cells, orderKey, `{"v":1,"max_id":1,"step":1000,"updated":7}`)
	}
	full := func(b *breaking) kv.Backend { return complete{b} }
	calls["Tags"] = func(ctx context.Context, db *kv.DB) error {
		for _, err := range db.Store().Tags(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, call := range calls {
		failEachOf(t, name, call, false, full, created)
	}
	for name, call := range setUp {
		failEachOf(t, name, call, false, full, without)
	}
	failEachOf(t, "Advance over an old cell", calls["Advance"], false, full, older)
	failEach(t, "Advance over an old cell", calls["Advance"], false, older)
}

// A Checker is asked once, and again by a listing of workers: a claim begins with it.
func TestCheckedOnce(t *testing.T) {
	cells := memory.NewBackend()
	b := &breaking{Backend: cells, nth: -1}
	db := open(t, complete{b})
	if err := errors.Join(db.Init(t.Context(), []segment.Tag{order}), db.InitRegistry(t.Context())); err != nil {
		t.Fatal(err)
	}
	advance := func() int {
		before := b.calls
		if err := inUse["Advance"](t.Context(), db); err != nil {
			t.Error(err)
		}
		return b.calls - before
	}
	advance()
	if n := advance(); n != 1 { // the Add
		t.Errorf("a known store is called %d times", n)
	}
	b.nth = b.calls
	if _, err := db.Registry().List(t.Context()); !errors.Is(err, errBroken) {
		t.Errorf("a listing that fails in the check: %v", err)
	}
	if n := advance(); n != 2 {
		t.Errorf("after a failed check the store is called %d times", n)
	}
}

// Messages name keys as the backend does.
func TestKeyNames(t *testing.T) {
	cells := memory.NewBackend()
	init := func(b kv.Backend) error { return open(t, b).Init(t.Context(), nil) }
	if err := init(cells); err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string]kv.Backend{
		"create the store: there is a key format/tags already": cells,
		"create the store: there is a row tags already":        complete{&breaking{Backend: cells, nth: -1}},
	} {
		err := init(b)
		if err == nil || err.Error() != want || !errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	err := open(t, cells).InitRegistry(t.Context())
	if err == nil {
		err = open(t, cells).InitRegistry(t.Context())
	}
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second registry: %v", err)
	}
	if err := open(t, memory.NewBackend()).Init(t.Context(), []segment.Tag{{Name: "order"}}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a tag without a step: %v", err)
	}
}

// Identities leaves out a part without one.
func TestIdentities(t *testing.T) {
	cells := memory.NewBackend()
	for _, text := range []string{"mine", `{"v":1}`, `[]`} {
		set(t, cells, tagMarker, text)
		set(t, cells, regMarker, `{"v":1,"store":"abc"}`)
		got, err := open(t, cells).Identities(t.Context())
		if want := map[string]string{"registry of worker IDs": "abc"}; err != nil || !maps.Equal(got, want) {
			t.Errorf("with a marker %s: %v, %v", text, got, err)
		}
	}
}

// With Create the first use creates the registry, and only one of several. A failed creation is
// an error.
func TestCreateOnUse(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	create := func() error {
		_, err := kv.New(b, &kv.Options{Create: true}).Registry().Load(t.Context(), 7)
		return err
	}
	b.before = func(_ context.Context, call string) error {
		if strings.HasPrefix(call, "swap") {
			return errBroken
		}
		return nil
	}
	if err := create(); !errors.Is(err, errBroken) {
		t.Errorf("a creation that fails: %v", err)
	}
	b.before = func(_ context.Context, call string) error {
		if strings.HasPrefix(call, "swap") {
			set(t, b.Backend, regMarker, `{"v":1,"store":"other"}`)
		}
		return nil
	}
	if err := create(); err != nil {
		t.Errorf("another process created the registry first: %v", err)
	}
	if got := value(t, b.Backend, regMarker); got != `{"v":1,"store":"other"}` {
		t.Errorf("the marker is %s", got)
	}
	if _, err := kv.New(b, &kv.Options{Create: true}).Store().Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("Create is for registries: %v", err)
	}
}

// Close ends the backend once, and tells its error. It starts no call after that, and calls that
// it interrupts say that they were.
func TestCloseDuringCalls(t *testing.T) {
	for _, at := range []string{"get tags/order", "swap tags/order"} {
		b := &hooked{Backend: memory.NewBackend(), end: errBroken}
		db := kv.New(b, nil)
		if err := db.Init(t.Context(), []segment.Tag{order}); err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		b.before = func(ctx context.Context, call string) error {
			if call == at {
				go func() { over <- db.Close() }()
				<-ctx.Done()
			}
			return ctx.Err()
		}
		_, err := db.Store().Advance(t.Context(), "order", 1)
		if !errors.Is(err, leaf.ErrClosed) || strings.Count(err.Error(), leaf.ErrClosed.Error()) != 1 {
			t.Errorf("closed at %s: %v", at, err)
		}
		if err := <-over; !errors.Is(err, errBroken) {
			t.Errorf("Close: %v", err)
		}
		if err := db.Close(); err != nil || b.closed != 1 {
			t.Errorf("a second Close: %v, the backend was closed %d times", err, b.closed)
		}
		b.log = nil
		if _, err := db.Store().Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrClosed) || len(b.log) > 0 {
			t.Errorf("after Close: %v and calls %v", err, b.log)
		}
	}
}

// A closing backend is closed by its check: a call between the check of the DB and its queue.
type closing struct {
	*hooked
	db *kv.DB
}

func (b *closing) Check(context.Context) error {
	_ = b.db.Close()
	b.log = nil
	return nil
}

func TestNoGoroutineAfterClose(t *testing.T) {
	b := &closing{hooked: &hooked{Backend: memory.NewBackend()}}
	newStore(t, b.Backend, order)
	b.db = kv.New(b, nil)
	_, err := b.db.Store().Advance(t.Context(), "order", 1)
	if !errors.Is(err, leaf.ErrClosed) || strings.Count(err.Error(), leaf.ErrClosed.Error()) != 1 {
		t.Errorf("got %v", err)
	}
	if n := b.db.Store().Counters(); n != 0 {
		t.Errorf("a closed store has %d counters", n)
	}
}

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
		if err := <-second; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "the store has not answered yet") {
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

// A process that has won 32 times in a row lets others try once, and only if it goes on at once.
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
