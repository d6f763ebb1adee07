package kv_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

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

func (b *hooked) String() string { return "the hooked store" }

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

// Prepare has to come before the first call of a cell.
func (b complete) Prepare(context.Context) error {
	b.prepared = true
	return b.try()
}

func (b complete) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	if b.strict && !b.prepared {
		return kv.Cell{}, errors.New("the place was not prepared")
	}
	return b.breaking.Get(ctx, key)
}

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

// A backend with all optional parts passes on their answers and failures.
func TestOptionalParts(t *testing.T) {
	calls := maps.Clone(inUse)
	calls["AdvanceStrict"] = func(ctx context.Context, db *kv.DB) error {
		_, err := db.Store().AdvanceStrict(ctx, "ticket", "", 5)
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

// The registry asks a Checker once, and again for a listing of workers: a claim begins with it.
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
	if err := open(t, cells).Init(t.Context(), []segment.Tag{ticket}); err == nil || value(t, cells, kv.Key{Kind: kv.Tags, Name: "ticket"}) != "" {
		t.Errorf("Init of an existing store creates a tag, with error %v", err)
	}
	cells = memory.NewBackend()
	for _, init := range setUp {
		if err := init(t.Context(), open(t, complete{&breaking{Backend: cells, nth: -1, strict: true}})); err != nil {
			t.Error(err)
		}
	}
	err := open(t, cells).InitRegistry(t.Context())
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
	for _, text := range []string{"mine", `{"v":1}`, `[]`, `{"v":"x","store":"abc"}`} {
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

// A successful call returns its result, even if the DB was closed meanwhile.
func TestCloseAfterSuccess(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	db := kv.New(b, nil)
	if err := db.InitRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.before = func(_ context.Context, call string) error {
		if call == "get workers/7" {
			return db.Close()
		}
		return nil
	}
	if _, err := db.Registry().Load(t.Context(), 7); err != nil {
		t.Error(err)
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
	if n := b.db.Store().Counters(); n != 0 || len(b.log) > 0 {
		t.Errorf("a closed store has %d counters and calls %v", n, b.log)
	}
}
