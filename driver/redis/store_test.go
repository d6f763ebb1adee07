package redis_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var order = segment.Tag{Name: "order", MaxID: 1, Step: 2000}

func advance(t testing.TB, s segment.Store, n int64) segment.Grant {
	t.Helper()
	grant, err := s.Advance(t.Context(), "order", n)
	if err != nil {
		t.Fatal(err)
	}
	return grant
}

func TestLargeNumbersAreExact(t *testing.T) {
	const top = math.MaxInt64
	for _, start := range []int64{1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<62 + 1, top - 4001} {
		s := newStore(t, fresh(t, shared.URL()), segment.Tag{Name: "order", MaxID: start, Step: 7})
		want := leaf.Range{Start: start, End: start + 7}
		for range 3 {
			if got := advance(t, s, 0).Range; got != want {
				t.Errorf("from %d: got %v, want %v", start, got, want)
			}
			want = leaf.Range{Start: want.End, End: want.End + 7}
		}
		last := advance(t, s, 3)
		if last.Range != (leaf.Range{Start: start + 21, End: start + 24}) {
			t.Errorf("from %d: got %v by 3", start, last.Range)
		}
		if err := s.Return(t.Context(), "order", last, start+22); err != nil {
			t.Errorf("from %d: return: %v", start, err)
		}
		below := start + 21
		if _, err := s.Alter(t.Context(), "order", segment.Change{MaxID: &below}); !errors.Is(err, leaf.ErrRegression) {
			t.Errorf("from %d: lower by one: %v", start, err)
		}
		tag, err := s.Alter(t.Context(), "order", segment.Change{MaxID: new(start + 22)})
		if err != nil || tag.MaxID != start+22 {
			t.Errorf("from %d: alter to the same: %+v, %v", start, tag, err)
		}
		if left := top - start - 22; left < 1<<31 {
			if _, err := s.Advance(t.Context(), "order", left+1); !errors.Is(err, leaf.ErrOverflow) {
				t.Errorf("from %d: one more than there are: %v", start, err)
			}
			if got := advance(t, s, left).Range; got != (leaf.Range{Start: start + 22, End: top}) {
				t.Errorf("from %d: the rest: %v", start, got)
			}
		}
	}
}

// A cell changes only if it has the form of this program.
func TestDamagedCells(t *testing.T) {
	const largest = "9223372036854775807"
	tests := map[string]struct {
		text string
		want error
	}{
		"another format":   {`{"v":5,"max_id":11,"step":2000,"updated":1}`, leaf.ErrUnsupported},
		"deleted":          {`{"v":1,"deleted":true,"max_id":11,"step":2000,"updated":1}`, leaf.ErrUnknownTag},
		"no max_id":        {`{"v":1,"step":0,"updated":1}`, segment.ErrDamaged},
		"negative max_id":  {`{"v":1,"max_id":-5,"step":2000,"updated":1}`, segment.ErrDamaged},
		"text max_id":      {`{"v":1,"max_id":"x","step":2000,"updated":1}`, segment.ErrDamaged},
		"odd max_id":       {`{"v":1,"max_id":007,"step":2000,"updated":1}`, segment.ErrDamaged},
		"huge max_id":      {`{"v":1,"max_id":9223372036854775808,"step":2000,"updated":1}`, segment.ErrDamaged},
		"at the end":       {`{"v":1,"max_id":` + largest + `,"step":2000,"store":"A","updated":1}`, leaf.ErrOverflow},
		"no step":          {`{"v":1,"max_id":11,"updated":1}`, segment.ErrDamaged},
		"step 0":           {`{"v":1,"max_id":11,"step":0,"updated":1}`, segment.ErrDamaged},
		"step huge":        {`{"v":1,"max_id":11,"step":2147483648,"updated":1}`, segment.ErrDamaged},
		"in another order": {`{"max_id":11,"v":1,"step":2000,"updated":1}`, segment.ErrDamaged},
		"no time":          {`{"v":1,"max_id":11,"step":2000}`, segment.ErrDamaged},
		"something behind": {`{"v":1,"max_id":11,"step":2000,"updated":1} `, segment.ErrDamaged},
		"no counter":       {`x`, segment.ErrDamaged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := fresh(t, shared.URL())
			s := newStore(t, config, order)
			key := "{" + config.Prefix + "}:store"
			do(t, shared, "HSET", key, "tags/order", tt.text)
			for _, n := range []int64{0, 1, 5000} {
				if _, err := s.Advance(t.Context(), "order", n); !errors.Is(err, tt.want) {
					t.Errorf("by %d: got error %v, want one that wraps %v", n, err, tt.want)
				}
			}
			if got := do(t, shared, "HGET", key, "tags/order"); got != tt.text {
				t.Errorf("the cell changed to %s", got)
			}
			do(t, shared, "HDEL", key, "tags/order")
			if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("no cell: %v", err)
			}
		})
	}
}

// An Advance leaves the rest of the cell unchanged, for every description.
func TestAdvanceKeepsTheRest(t *testing.T) {
	want := segment.Tag{Name: "订单", MaxID: 1, Step: 20, Options: segment.Describe(`"updated":5} %d \ "max_id":7,"step":8, 订单<>&`)}
	want.Options = want.Options.With(segment.TagOptions{"late": `"`, "updated": `5}`, "store": `x`})
	s := newStore(t, fresh(t, shared.URL()), want)
	start := time.Now()
	for _, n := range []int64{0, 5, 1_000_000_000, 0} {
		g, err := s.Advance(t.Context(), want.Name, n)
		if n == 0 {
			n = want.Step
		}
		if err != nil || g.Range != (leaf.Range{Start: want.MaxID, End: want.MaxID + n}) || g.Step != want.Step {
			t.Fatalf("%+v, %v, want %d from %d", g, err, n, want.MaxID)
		}
		want.MaxID += n
		for tag, err := range s.Tags(t.Context()) {
			if d := tag.Updated.Sub(start).Abs(); d > time.Minute {
				t.Errorf("written at %v", tag.Updated)
			}
			tag.Updated = time.Time{}
			if err != nil || !tag.Same(want) {
				t.Errorf("got %+v, %v, want %+v", tag, err, want)
			}
		}
	}
}

func TestStoreHasNoTimeToLive(t *testing.T) {
	config := fresh(t, shared.URL())
	s := newStore(t, config, order)
	advance(t, s, 1)
	key := "{" + config.Prefix + "}:store"
	if ttl := do(t, shared, "PTTL", key); ttl != "-1" {
		t.Errorf("the store lives for %s ms", ttl)
	}
	do(t, shared, "EXPIRE", key, "1000")
	if _, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "PERSIST") {
		t.Errorf("an Advance of a counter that will expire: %v", err)
	}
	do(t, shared, "PERSIST", key)
	if got := advance(t, s, 1).Range.Start; got != 2 {
		t.Errorf("got %d", got)
	}
}

func TestLostReplies(t *testing.T) {
	p := newProxy(t, shared.Addr())
	config := fresh(t, "redis://"+p.addr)
	s := newStore(t, config, order)
	if err := s.Return(t.Context(), "order", advance(t, s, 10), 1); err != nil { // the server knows the script now
		t.Fatal(err)
	}
	r := advance(t, s, 100).Range

	sent := p.scripts.Load()
	p.lose.Store(1)
	if _, err := s.Advance(t.Context(), "order", 100); err == nil {
		t.Fatal("an Advance whose reply was lost succeeded")
	}
	if n := p.scripts.Load() - sent; n != 1 {
		t.Errorf("the Advance was sent %d times", n)
	}
	lost := leaf.Range{Start: r.End, End: r.End + 100}
	last := advance(t, s, 100)
	if last.Range.Start != lost.End {
		t.Errorf("after a lost range: got %v, want it behind %v", last.Range, lost)
	}

	sent = p.scripts.Load()
	p.lose.Store(1)
	if err := s.Return(t.Context(), "order", last, 251); err == nil {
		t.Error("a Return whose reply was lost succeeded")
	}
	if n := p.scripts.Load() - sent; n != 1 {
		t.Errorf("the Return was sent %d times", n)
	}
	if got := advance(t, s, 1).Range; got.Start != 251 {
		t.Errorf("after the Return: got %v", got)
	}
}

func TestScriptsForgotten(t *testing.T) {
	s := newStore(t, fresh(t, shared.URL()), order)
	for want := int64(1); want < 4; want++ {
		do(t, shared, "SCRIPT", "FLUSH")
		if got := advance(t, s, 1).Range.Start; got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

// TestRestart shows the effect of a server's crash on the guard: none on a lossless server, a new
// server name otherwise.
func TestRestart(t *testing.T) {
	for fsync, same := range map[string]bool{"always": true, "everysec": false} {
		t.Run(fsync, func(t *testing.T) {
			server := testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"appendfsync", fsync}}})
			s := newStore(t, parse(t, server.URL()), order)
			before := advance(t, s, 10)
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(t.Context(), "order", 10); err == nil || !strings.Contains(err.Error(), "no server answers there") {
				t.Errorf("with the server gone: %v", err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
			after := advance(t, s, 10)
			if (before.Server == after.Server) != same || (before.Server == "") != same {
				t.Errorf("server %q before, %q after", before.Server, after.Server)
			}
			if same && after.Range.Start != before.Range.End {
				t.Errorf("%v follows %v", after.Range, before.Range)
			}
		})
	}
}

func TestPausedServerHoldsNobody(t *testing.T) {
	server := testserver.Redis(t, nil)
	s := newStore(t, parse(t, server.URL()), order)
	advance(t, s, 10)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	_, err := s.Advance(ctx, "order", 10)
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := advance(t, s, 10).Range; got.Start < 11 {
		t.Errorf("got %v again", got)
	}
}

func TestInit(t *testing.T) {
	config := fresh(t, shared.URL())
	db := open(t, config)
	s, r := db.Store(), db.Registry()
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) || !strings.Contains(err.Error(), "}:store") {
		t.Errorf("no store: %v", err)
	}
	if _, err := r.Load(t.Context(), 1); !errors.Is(err, worker.ErrNotCreated) {
		t.Errorf("no registry: %v", err)
	}
	checkExists(t, db, false)
	if err := db.Init(t.Context(), []segment.Tag{order, order}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("one tag twice: %v", err)
	}
	if err := db.Init(t.Context(), []segment.Tag{order, {Name: "user", MaxID: 5, Step: 10, Options: segment.Describe("x y")}}); err != nil {
		t.Fatal(err)
	}
	if err := db.InitRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkExists(t, db, true)
	advance(t, s, 1)
	if err := db.Init(t.Context(), []segment.Tag{order}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("init twice: %v", err)
	}
	if err := db.InitRegistry(t.Context()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("init twice: %v", err)
	}
	if got := advance(t, s, 1).Range.Start; got != 2 {
		t.Errorf("the second init changed the counter: got %d", got)
	}
	// A counter without its marker is not begun again.
	store := "{" + config.Prefix + "}:store"
	do(t, shared, "HDEL", store, "format/tags")
	if err := db.Init(t.Context(), []segment.Tag{order}); err != nil {
		t.Errorf("init over a counter: %v", err)
	}
	if got := advance(t, openStore(t, config), 1).Range.Start; got != 3 {
		t.Errorf("an init changed the counter: got %d", got)
	}
	for text, want := range map[string]string{`{"v":99}`: "format 99", "hello": "choose another prefix"} {
		do(t, shared, "HSET", store, "format/tags", text)
		if _, err := openStore(t, config).Advance(t.Context(), "order", 1); !errors.Is(err, leaf.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("with format %s: %v", text, err)
		}
	}
}

func checkExists(t *testing.T, db *kv.DB, want bool) {
	t.Helper()
	store, err1 := db.Store().Exists(t.Context())
	registry, err2 := db.Registry().Exists(t.Context())
	if err1 != nil || err2 != nil || store != want || registry != want {
		t.Errorf("exists: store %v, %v, registry %v, %v; want %v", store, err1, registry, err2, want)
	}
}
