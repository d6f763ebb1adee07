package kv_test

import (
	"context"
	"errors"
	"fmt"
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

// An answering backend gives one answer to each Add.
type answering struct {
	*memory.Backend
	text  string
	by    int64
	after func()
}

func (b answering) Add(context.Context, kv.Key, int64) (kv.Cell, int64, error) {
	if b.after != nil {
		defer b.after()
	}
	if b.text == "" {
		return kv.Cell{Key: orderKey}, b.by, nil
	}
	return kv.Cell{Key: orderKey, Version: "9", Value: b.text, Server: "east"}, b.by, nil
}

// The store accepts only possible answers to an Add.
func TestAnswersOfAdders(t *testing.T) {
	const rest = `"step":10,"store":"abc","updated":5}`
	damage := segment.ErrDamaged
	for _, c := range []struct {
		text  string
		by, n int64
		want  error
	}{
		{`{"v":1,"max_id":10,` + rest, 10, 0, nil},
		{`{"v":1,"max_id":7,` + rest, 7, 7, nil},
		{`{"v":1,"max_id":6,` + rest, 7, 7, errAny},
		{`{"v":1,"max_id":17,` + rest, 8, 7, errAny},
		{`{"v":1,"max_id":17,` + rest, 10, 7, errAny},
		{`{"v":1,"max_id":17,` + rest, 7, 0, errAny},
		{`{"v":1,"max_id":17,` + rest, 0, 7, damage},
		{`{"v":1,"max_id":9223372036854775807,` + rest, 0, 7, leaf.ErrOverflow},
		{`{"v":2,"max_id":17,"options":{"order":"strict"},` + rest, 0, 7, segment.ErrStrict},
		{`{"v":2,"max_id":17,"options":{"order":"strict"},"step":10,"store":"abc"}`, 0, 7, segment.ErrStrict},
		{`{"max_id":17,"step":10}`, 0, 7, damage},
		{`{"v":1, "max_id":17,"step":10,"updated":5}`, 0, 7, damage},
		{`{"v":9}`, 0, 7, leaf.ErrUnsupported},
		{"", 0, 7, leaf.ErrUnknownTag},
	} {
		cells := memory.NewBackend()
		newStore(t, cells, order)
		g, err := open(t, answering{cells, c.text, c.by, nil}).Store().Advance(t.Context(), "order", c.n)
		switch {
		case c.want == errAny:
			if err == nil {
				t.Errorf("%s by %d for %d: %+v", c.text, c.by, c.n, g)
			}
		case !errors.Is(err, c.want):
			t.Errorf("%s by %d for %d: %v, want %v", c.text, c.by, c.n, err, c.want)
		case err == nil:
			if g.Range.Len() != c.by || g.Step != 10 || g.Server != "east" || g.Store != "abc" || g.Version != "9 "+c.text {
				t.Errorf("%s: %+v", c.text, g)
			}
		}
	}
	cells := memory.NewBackend()
	newStore(t, cells, order)
	s := open(t, answering{Backend: cells}).Store()
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("without a cell: %v", err)
	}
	cells.Restore(memory.Snapshot{})
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("without a store: %v", err)
	}
	newStore(t, cells)
	const old = `{"v":2,"max_id":17,"step":10,"options":{"order":"strict"},"updated":5}`
	set(t, cells, orderKey, old)
	if _, err := open(t, adding{Backend: cells}).Store().Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrStrict) {
		t.Errorf("a strict tag without an identity: %v", err)
	}
	if got := value(t, cells, orderKey); !strings.Contains(got, `"store":"`) {
		t.Errorf("the cell is %s", got)
	}
}

var errAny = errors.New("any error")

// The identity of the store returns into a cell only while that is a tag: deleted or damaged
// meanwhile, it stays so.
func TestIdentityOfVanishedTag(t *testing.T) {
	const without = `{"v":1,"max_id":20,"step":10,"updated":5}`
	for text, want := range map[string]error{`{"v":1,"deleted":true,"max_id":20}`: leaf.ErrUnknownTag, `damaged`: segment.ErrDamaged} {
		cells := memory.NewBackend()
		newStore(t, cells, order)
		b := answering{cells, without, 1, func() { set(t, cells, orderKey, text) }}
		if _, err := open(t, b).Store().Advance(t.Context(), "order", 1); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if got := value(t, cells, orderKey); got != text {
			t.Errorf("the cell is %s", got)
		}
	}
}

// A store that is gone, or another program's, gives no identity.
func TestIdentityWithoutMarker(t *testing.T) {
	for text, want := range map[string]error{"": segment.ErrNotCreated, "mine": leaf.ErrUnsupported, `{"v":2}`: leaf.ErrUnsupported} {
		cells := memory.NewBackend()
		s := newStore(t, cells, order)
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Fatal(err)
		}
		cells.Restore(memory.Snapshot{})
		set(t, cells, orderKey, `{"v":1,"max_id":20,"step":10,"updated":5}`)
		if text != "" {
			set(t, cells, tagMarker, text)
		}
		_, err := s.Advance(t.Context(), "order", 1)
		if _, again := s.Advance(t.Context(), "order", 1); !errors.Is(err, want) || !errors.Is(again, want) {
			t.Errorf("with the marker %q: %v and %v", text, err, again)
		}
		if got := value(t, cells, orderKey); !strings.Contains(got, `"max_id":20`) {
			t.Errorf("the counter went to %s", got)
		}
	}
}

// Two clients give an old store one identity, and a client that may only read goes without.
func TestIdentityOfOldStore(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	set(t, b.Backend, tagMarker, `{"v":1}`)
	set(t, b.Backend, orderKey, `{"v":1,"max_id":20,"step":10,"updated":5}`)
	b.before = func(_ context.Context, call string) error {
		if call == "swap format/tags" {
			return errBroken
		}
		return nil
	}
	for tag, err := range open(t, b).Store().Tags(t.Context()) {
		if err != nil || tag.Name != "order" || !tag.Updated.Equal(time.UnixMilli(5)) {
			t.Errorf("listed %+v, %v", tag, err)
		}
	}
	if b.count("swap format/tags") != 1 {
		t.Error("the first use does not give the store an identity")
	}
	if _, err := open(t, b).Store().Advance(t.Context(), "order", 1); !errors.Is(err, errBroken) {
		t.Errorf("an Advance that cannot give the store an identity: %v", err)
	}
	b.before = func(_ context.Context, call string) error {
		if call == "swap format/tags" {
			set(t, b.Backend, tagMarker, `{"v":1,"store":"other"}`)
		}
		return nil
	}
	if g, err := open(t, b).Store().Advance(t.Context(), "order", 1); err != nil || g.Store != "other" {
		t.Errorf("another client was first: %+v, %v", g, err)
	}
}

// A tag has exactly this text in its cell.
func TestCellText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cells := memory.NewBackend()
		s := newStore(t, cells)
		now := func() string { return fmt.Sprint(time.Now().UnixMilli()) }
		id := value(t, cells, tagMarker)[len(`{"v":1,"store":"`):]
		id = strings.TrimSuffix(id, `"}`)
		check := func(want string) {
			t.Helper()
			if got := value(t, cells, orderKey); got != want {
				t.Errorf("the cell is %s, want %s", got, want)
			}
		}
		described := segment.Tag{Name: "order", Step: 10, Options: segment.Describe("what for")}
		if err := s.Create(t.Context(), described); err != nil {
			t.Fatal(err)
		}
		check(`{"v":1,"max_id":0,"step":10,"description":"what for","store":"` + id + `","updated":` + now() + `}`)
		time.Sleep(time.Second)
		g, err := s.Advance(t.Context(), "order", 0)
		if err != nil {
			t.Fatal(err)
		}
		check(`{"v":1,"max_id":10,"step":10,"description":"what for","store":"` + id + `","updated":` + now() + `}`)
		if err := s.Return(t.Context(), "order", g, 0); err != nil { // down to zero
			t.Error(err)
		}
		check(`{"v":1,"max_id":0,"step":10,"description":"what for","store":"` + id + `","updated":` + fmt.Sprint(time.Now().UnixMilli()+1) + `}`)
		if _, err := s.Alter(t.Context(), "order", segment.Change{Options: segment.TagOptions{"later": "on"}}); err != nil {
			t.Error(err)
		}
		check(`{"v":2,"max_id":0,"step":10,"description":"what for","options":{"later":"on"},"store":"` + id + `","updated":` + now() + `}`)
		set(t, cells, orderKey, `{"v":1,"max_id":5,"step":10,"store":"`+id+`"}`)
		for tag, err := range s.Tags(t.Context()) {
			if err != nil || !tag.Updated.IsZero() {
				t.Errorf("a cell without a time: %+v, %v", tag, err)
			}
		}
		future := time.Now().UnixMilli() + 1000
		text := fmt.Sprintf(`{"v":1,"max_id":5,"step":10,"store":"%s","updated":%d}`, id, future)
		set(t, cells, orderKey, text)
		cell, _ := cells.Get(t.Context(), orderKey)
		last := segment.Grant{Range: leaf.Range{Start: 1, End: 5}, Version: cell.Version + " " + text}
		if err := s.Return(t.Context(), "order", last, 4); err != nil {
			t.Error(err)
		}
		check(fmt.Sprintf(`{"v":1,"max_id":4,"step":10,"store":"%s","updated":%d}`, id, future+1))
	})
}

// A give-back of something else than a grant is invalid, and names the range.
func TestReturnOfNoGrant(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	s := newStore(t, b, order)
	g, err := s.Advance(t.Context(), "order", 10)
	if err != nil {
		t.Fatal(err)
	}
	b.log, b.olds = nil, nil
	for name, c := range map[string]struct {
		edit  func(*segment.Grant)
		start int64
	}{
		"negative":      {func(*segment.Grant) {}, -1},
		"at the end":    {func(*segment.Grant) {}, 11},
		"another range": {func(g *segment.Grant) { g.Range.End-- }, 3},
		"no version":    {func(g *segment.Grant) { g.Version = "" }, 3},
		"no counter":    {func(g *segment.Grant) { g.Version = "7 mine" }, 3},
	} {
		other := g
		c.edit(&other)
		err := s.Return(t.Context(), "order", other, c.start)
		if !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if want := fmt.Sprintf("return [%d, %d) of", c.start, other.Range.End); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v, want it to begin %s", name, err, want)
		}
		if name == "no counter" && !errors.Is(err, segment.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Return(t.Context(), "a\nb", g, 3); !errors.Is(err, leaf.ErrUnknownTag) || len(b.log) > 0 {
		t.Errorf("an impossible name: %v and calls %v", err, b.log)
	}
	g.Server = "east"
	if err := s.Return(t.Context(), "order", g, 3); err != nil || len(b.olds) != 1 || b.olds[0].Server != "east" {
		t.Errorf("%v, swaps from %v", err, b.olds)
	}
}

// A cell is a tag, a deleted one, damaged, or a newer release's.
func TestCells(t *testing.T) {
	for text, want := range map[string]error{
		`{"v":1,"max_id":0,"step":1}`:             nil,
		`{"v":2,"max_id":5,"step":2147483647}`:    nil,
		`{"v":1,"max_id":5,"step":2147483648}`:    segment.ErrDamaged,
		`{"v":1,"max_id":5,"step":0}`:             segment.ErrDamaged,
		`{"v":1,"max_id":-1,"step":1}`:            segment.ErrDamaged,
		`{"v":0,"max_id":5,"step":1}`:             segment.ErrDamaged,
		`{"max_id":5,"step":1,"deleted":true}`:    segment.ErrDamaged,
		`{"v":1,"max_id":5,"step":1`:              segment.ErrDamaged,
		`{"v":1,"max_id":5,"step":1,"late":"x"}`:  segment.ErrDamaged,
		`{"v":9,"max_id":5,"step":"x"}`:           segment.ErrDamaged,
		`{"v":1,"deleted":true,"step":"x"}`:       segment.ErrDamaged,
		``:                                        segment.ErrDamaged,
		`{"v":9,"max_id":5,"step":1}`:             leaf.ErrUnsupported,
		`{"v":1,"deleted":true,"max_id":5}`:       leaf.ErrUnknownTag,
		`{"v":1,"deleted":true,"max_id":-9}`:      leaf.ErrUnknownTag,
		`{"v":2,"deleted":true,"max_id":5,"x":1}`: leaf.ErrUnknownTag,
	} {
		cells := memory.NewBackend()
		s := newStore(t, cells)
		set(t, cells, orderKey, text)
		_, err := s.Advance(t.Context(), "order", 1)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		if errors.Is(err, segment.ErrDamaged) && !strings.Contains(err.Error(), fmt.Sprintf("tags/order holds %q", text)) {
			t.Errorf("%s: %v", text, err)
		}
		_, listErr := listed(t, s)
		if unknown := errors.Is(want, leaf.ErrUnknownTag); (listErr == nil) != (want == nil || unknown) || want != nil && !unknown && !errors.Is(listErr, want) {
			t.Errorf("%s: listed with %v", text, listErr)
		}
		create := s.Create(t.Context(), segment.Tag{Name: "order", MaxID: 3, Step: 1})
		switch {
		case want == nil && !errors.Is(create, leaf.ErrTagExists), errors.Is(want, leaf.ErrUnknownTag) && create != nil:
			t.Errorf("%s: create: %v", text, create)
		case want != nil && !errors.Is(want, leaf.ErrUnknownTag) && (!errors.Is(create, want) || value(t, cells, orderKey) != text):
			t.Errorf("%s: create: %v, the cell is %s", text, create, value(t, cells, orderKey))
		case create == nil:
			if g, err := s.Advance(t.Context(), "order", 1); err != nil || g.Range.Start != max(3, 5*int64(strings.Count(text, `"max_id":5`))) {
				t.Errorf("%s: a new tag begins with %v, %v", text, g, err)
			}
		}
	}
}

func listed(t *testing.T, s *kv.Store) (names []string, err error) {
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			return names, err
		}
		names = append(names, tag.Name)
	}
	return names, nil
}

// Only a forced change of both numbers repairs a damaged tag; a change fails for an unknown one.
func TestAlterRepairs(t *testing.T) {
	step, high := new(int64(7)), new(int64(90))
	for _, c := range []segment.Change{
		{Step: step, MaxID: high}, {Step: step, Force: true}, {MaxID: high, Force: true}, {Step: step, MaxID: high, Force: true},
	} {
		whole := c.Step != nil && c.MaxID != nil && c.Force
		for text, damage := range map[string]error{"damaged": segment.ErrDamaged, `{"v":1,"deleted":true,"max_id":5}`: leaf.ErrUnknownTag, `{"v":9}`: leaf.ErrUnsupported} {
			cells := memory.NewBackend()
			s := newStore(t, cells)
			set(t, cells, orderKey, text)
			tag, err := s.Alter(t.Context(), "order", c)
			if repaired := whole && damage == segment.ErrDamaged; repaired {
				if err != nil || tag.MaxID != 90 || tag.Step != 7 || tag.Name != "order" {
					t.Errorf("%+v of %s: %+v, %v", c, text, tag, err)
				}
				continue
			}
			if !errors.Is(err, damage) || value(t, cells, orderKey) != text {
				t.Errorf("%+v of %s: %v, the cell is %s", c, text, err, value(t, cells, orderKey))
			}
		}
	}
	s := newStore(t, memory.NewBackend(), order)
	if _, err := s.Alter(t.Context(), "order", segment.Change{MaxID: new(int64(0))}); !errors.Is(err, leaf.ErrRegression) {
		t.Errorf("lowered: %v", err)
	}
	if names, err := listed(t, s); err != nil || len(names) != 1 {
		t.Errorf("after a refused change: %v, %v", names, err)
	}
}

// The store asks no backend for a name that no tag can have.
func TestImpossibleNames(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	s := newStore(t, b, order)
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	b.log = nil
	_, advance := s.Advance(t.Context(), "a\nb", 1)
	_, strict := s.AdvanceStrict(t.Context(), "a\nb", "", 1)
	_, alter := s.Alter(t.Context(), "a\nb", segment.Change{})
	for _, err := range []error{advance, strict, alter, s.Delete(t.Context(), "a\nb")} {
		if !errors.Is(err, leaf.ErrUnknownTag) || len(b.log) > 0 {
			t.Errorf("%v and calls %v", err, b.log)
		}
	}
}

// A strict tag gets IDs from AdvanceStrict alone, and from no store that may lose writes unless the
// tag accepts that. A refused call writes nothing.
func TestStrictOrder(t *testing.T) {
	cells := memory.NewBackend()
	strict := segment.Tag{Name: "strict", Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	newStore(t, cells, order, ticket, strict)
	b := &hooked{Backend: cells}
	safe, lossy := open(t, b).Store(), open(t, complete{&breaking{Backend: cells, nth: -1}}).Store()
	for _, c := range []struct {
		s    *kv.Store
		tag  string
		n    int64
		want error
	}{
		{safe, "strict", 3, nil}, {safe, "ticket", 3, nil}, {safe, "order", 3, leaf.ErrUnknownTag}, {safe, "none", 3, leaf.ErrUnknownTag},
		{safe, "strict", 0, leaf.ErrInvalid}, {safe, "a\nb", 1, leaf.ErrUnknownTag},
		{lossy, "strict", 3, leaf.ErrUnsupported}, {lossy, "ticket", 3, nil}, {lossy, "order", 3, leaf.ErrUnknownTag},
	} {
		b.log = nil
		g, err := c.s.AdvanceStrict(t.Context(), c.tag, "", c.n)
		if !errors.Is(err, c.want) || err == nil && g.Range.Len() != c.n {
			t.Errorf("%s, %d: %+v, %v, want %v", c.tag, c.n, g, err, c.want)
		}
		if wrote := slices.Contains(b.log, "swap tags/"+c.tag); c.s == safe && wrote != (c.want == nil) {
			t.Errorf("%s, %d: calls %v", c.tag, c.n, b.log)
		}
	}
	for _, s := range []*kv.Store{safe, lossy} {
		if _, err := s.Advance(t.Context(), "strict", 1); !errors.Is(err, segment.ErrStrict) {
			t.Errorf("Advance of a strict tag: %v", err)
		}
	}
}

// The registry passes on the clock and the watch of its backend, and lists workers in order. A key
// that is no worker's is an error.
func TestRegistryCalls(t *testing.T) {
	cells := memory.NewBackend()
	db := open(t, cells)
	if err := db.InitRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := db.Registry()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	cells.SetClock(func() time.Time { return noon })
	if now, err := r.Clock(t.Context()); err != nil || !now.Equal(noon) {
		t.Errorf("the clock: %v, %v", now, err)
	}
	if epoch, err := r.ServerEpoch(t.Context()); err != nil || epoch != (worker.ServerEpoch{}) {
		t.Errorf("the epoch of a backend without one: %+v, %v", epoch, err)
	}
	wrote, err := r.Watch(t.Context(), 7)
	if err != nil || wrote == nil {
		t.Fatalf("watch: %v", err)
	}
	for _, id := range []int64{10, 7, 9} {
		if _, err := r.Swap(t.Context(), worker.Record{Worker: id}, worker.Record{Worker: id, Term: id}); err != nil {
			t.Error(err)
		}
	}
	select {
	case <-wrote:
	default:
		t.Error("the watch does not notice a write")
	}
	if wrote, err := open(t, &counting{Backend: cells}).Registry().Watch(t.Context(), 7); wrote != nil || err != nil {
		t.Errorf("a backend that cannot watch: %v, %v", wrote, err)
	}
	all, err := r.List(t.Context())
	if err != nil || len(all) != 3 || all[0].Term != 7 || all[1].Term != 9 || all[2].Term != 10 {
		t.Errorf("listed %+v, %v", all, err)
	}
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 3}, worker.Record{Worker: 3, Term: 1, Horizon: time.UnixMilli(-1)}); err == nil {
		t.Error("a record without a text is written")
	}
	for _, name := range []string{"07", "-1", "x", "9223372036854775808", ""} {
		set(t, cells, kv.Key{Kind: kv.Workers, Name: name}, value(t, cells, kv.Key{Kind: kv.Workers, Name: "7"}))
		if _, err := r.List(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a worker's") {
			t.Errorf("a key %q: %v", name, err)
		}
		snapshot := cells.Snapshot()
		delete(snapshot, kv.Key{Kind: kv.Workers, Name: name})
		cells.Restore(snapshot)
	}
}

// An edit that meets another writer starts over from the other's text.
func TestEditAfterConflict(t *testing.T) {
	b := &hooked{Backend: memory.NewBackend()}
	s := newStore(t, b, order)
	meet := 2
	b.before = func(_ context.Context, call string) error {
		if call == "swap tags/order" && meet > 0 {
			meet--
			set(t, b.Backend, orderKey, fmt.Sprintf(`{"v":1,"max_id":%d,"step":10}`, 100-meet))
		}
		return nil
	}
	tag, err := s.Alter(t.Context(), "order", segment.Change{Step: new(int64(5))})
	if err != nil || tag.MaxID != 100 || tag.Step != 5 {
		t.Errorf("got %+v, %v", tag, err)
	}
}
