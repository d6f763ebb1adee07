package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/redis"
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

func TestDamagedKeys(t *testing.T) {
	tests := map[string]struct {
		damage []string // a command; K is the tag's key
		n      int64
		want   string
	}{
		"TTL":             {[]string{"EXPIRE", "K", "1000"}, 1, "PERSIST"},
		"no max_id":       {[]string{"HDEL", "K", "max_id"}, 1, "its max_id is missing"},
		"negative max_id": {[]string{"HSET", "K", "max_id", "-5"}, 1, "its max_id is -5"},
		"text max_id":     {[]string{"HSET", "K", "max_id", "x"}, 1, "its max_id is x"},
		"odd max_id":      {[]string{"HSET", "K", "max_id", "007"}, 1, "its max_id is 007"},
		"huge max_id":     {[]string{"HSET", "K", "max_id", "9223372036854775808"}, 1, "its max_id is 9223372036854775808"},
		"no step":         {[]string{"HDEL", "K", "step"}, 0, "its step is missing"},
		"step 0":          {[]string{"HSET", "K", "step", "0"}, 0, "its step is 0"},
		"step huge":       {[]string{"HSET", "K", "step", "99999999999999999999"}, 0, "its step is 99999999999999999999"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := fresh(t, shared.URL())
			s := newStore(t, config, order)
			advance(t, s, 1)
			key := fmt.Sprintf("{%s}:alloc:order", config.Prefix)
			for i, arg := range tt.damage {
				if arg == "K" {
					tt.damage[i] = key
				}
			}
			do(t, shared, tt.damage...)
			before := do(t, shared, "HGETALL", key)
			if _, err := s.Advance(t.Context(), "order", tt.n); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one about %q", err, tt.want)
			}
			if diff := cmp.Diff(before, do(t, shared, "HGETALL", key)); diff != "" {
				t.Errorf("the key changed:\n%s", diff)
			}
		})
	}
}

// TestDamagedCounterIsSetWithForce: a counter that cannot be read may have stood above
// what it is to be set to.
func TestDamagedCounterIsSetWithForce(t *testing.T) {
	for _, damage := range [][]string{{"HSET", "max_id", "x"}, {"HDEL", "max_id"}} {
		config := fresh(t, shared.URL())
		s := newStore(t, config, order)
		do(t, shared, append([]string{damage[0], fmt.Sprintf("{%s}:alloc:order", config.Prefix)}, damage[1:]...)...)
		change := segment.Change{MaxID: new(int64(500))}
		if _, err := s.Alter(t.Context(), "order", change); !errors.Is(err, segment.ErrDamaged) {
			t.Errorf("%v: got error %v, want one that wraps ErrDamaged", damage, err)
		}
		change.Force = true
		if tag, err := s.Alter(t.Context(), "order", change); err != nil || tag.MaxID != 500 {
			t.Errorf("%v: with force: got %+v, %v", damage, tag, err)
		}
	}
}

func TestStepDamagedButNotNeeded(t *testing.T) {
	config := fresh(t, shared.URL())
	s := newStore(t, config, order)
	do(t, shared, "HDEL", fmt.Sprintf("{%s}:alloc:order", config.Prefix), "step")
	if got := advance(t, s, 10); got.Range != (leaf.Range{Start: 1, End: 11}) || got.Step != 1 {
		t.Errorf("got %+v, want [1, 11) and step 1", got)
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

// TestRestart shows what a crash of the server means to the guard: nothing where
// nothing can be lost, another server where something can.
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
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 2*time.Second {
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
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) || !strings.Contains(err.Error(), "}:format") {
		t.Errorf("no store: %v", err)
	}
	if _, err := r.Load(t.Context(), 1); !errors.Is(err, worker.ErrNotCreated) {
		t.Errorf("no registry: %v", err)
	}
	checkExists(t, db, false)
	if err := db.Init(t.Context(), []segment.Tag{order, order}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("one tag twice: %v", err)
	}
	if err := db.Init(t.Context(), []segment.Tag{order, {Name: "user", MaxID: 5, Step: 10, Description: "x y"}}); err != nil {
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
	// A counter without its marker is not begun again either.
	do(t, shared, "DEL", "{"+config.Prefix+"}:format", "{"+config.Prefix+"}:tags")
	if err := db.Init(t.Context(), []segment.Tag{order}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("init over a counter: %v", err)
	}
	for text, want := range map[string]string{"99": "upgrade Leaf", "hello": "choose another prefix"} {
		do(t, shared, "SET", "{"+config.Prefix+"}:format", text)
		if _, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with format %s: %v", text, err)
		}
	}
}

func checkExists(t *testing.T, db *redis.DB, want bool) {
	t.Helper()
	store, err1 := db.Store().Exists(t.Context())
	registry, err2 := db.Registry().Exists(t.Context())
	if err1 != nil || err2 != nil || store != want || registry != want {
		t.Errorf("exists: store %v, %v, registry %v, %v; want %v", store, err1, registry, err2, want)
	}
}
