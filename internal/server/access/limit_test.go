package access_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/internal/server/access"
)

// after returns when a limit lets more pass; -1 if err is not a limit.
func after(err error) time.Duration {
	limit, ok := errors.AsType[*access.LimitError](err)
	if !ok {
		return -1
	}
	return limit.RetryAfter
}

func from(t *testing.T, g *access.Gate, text string) *access.Caller {
	t.Helper()
	c, err := g.Caller(access.Credentials{Addr: netip.MustParseAddr(text)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClientLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := access.New(access.Options{Limits: access.Limits{Client: access.Limit{Rate: 10, Burst: 100}}})
		if g.Open() {
			t.Error("a gate with limits is open")
		}
		c := from(t, g, "192.0.2.1")
		want(t, "a burst", c.Take("", "a", 100), nil)
		want(t, "any", c.Take("", "a", 0), nil)
		if err := c.Take("", "b", 10); after(err) != time.Second || !errors.Is(err, access.ErrLimit) {
			t.Errorf("too soon: %v, after %v", err, after(err))
		}
		if err := c.Take("", "b", 101); after(err) != 0 {
			t.Errorf("more than a burst: %v, after %v; want never", err, after(err))
		}
		want(t, "another client", from(t, g, "192.0.2.2").Take("", "a", 100), nil)
		if err := from(t, g, "192.0.2.1").Take("", "a", 1); after(err) != 100*time.Millisecond {
			t.Errorf("another connection of the first: %v", err)
		}
		time.Sleep(time.Second)
		want(t, "in time", c.Take("", "b", 10), nil)
	})
}

// All addresses of an IPv6 network are one client.
func TestClientNetwork(t *testing.T) {
	g := access.New(access.Options{Limits: access.Limits{Client: access.Limit{Quota: 1}}})
	want(t, "first", from(t, g, "2001:db8::1").Take("", "a", 1), nil)
	want(t, "same network", from(t, g, "2001:db8::2").Take("", "a", 1), access.ErrLimit)
	want(t, "another network", from(t, g, "2001:db8:0:1::1").Take("", "a", 1), nil)
}

func TestTagLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := access.New(access.Options{Limits: access.Limits{
			Client: access.Limit{Rate: 1000},
			Tags:   map[string]access.Limit{"order.*": {Rate: 10}, "*.b": {Quota: 15}},
		}})
		c, other := from(t, g, "192.0.2.1"), from(t, g, "192.0.2.2")
		want(t, "a", c.Take("", "order.a", 10), nil)
		want(t, "a, another client", other.Take("ticket", "order.a", 1), access.ErrLimit)
		want(t, "a of another scheme", other.Take("uid", "order.a", 1), nil)
		want(t, "b", other.Take("", "order.b", 10), nil)
		time.Sleep(time.Second)
		if err := c.Take("", "order.b", 6); after(err) <= time.Hour {
			t.Errorf("over the quota: %v, after %v", err, after(err))
		}
		want(t, "b, what was not had does not count", c.Take("", "order.b", 5), nil)
		want(t, "c", c.Take("", "c", 900), nil)
	})
}

// A refund takes back exactly the counted IDs.
func TestRefund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := access.New(access.Options{Limits: access.Limits{
			Client: access.Limit{Rate: 10, Burst: 10},
			Tags:   map[string]access.Limit{"*": {Quota: 12}},
		}})
		c := from(t, g, "192.0.2.1")
		want(t, "all", c.Take("", "a", 10), nil)
		c.Refund("", "a", 10)
		want(t, "all again", c.Take("", "a", 10), nil)
		want(t, "one more", c.Take("", "a", 1), access.ErrLimit)
		c.Refund("", "a", 1)
		c.Refund("", "a", 1)
		time.Sleep(time.Second)
		want(t, "over the quota", c.Take("", "a", 5), access.ErrLimit)
		want(t, "what is left of it", c.Take("", "a", 4), nil)
		for range 3 {
			c.Refund("", "b", 10) // it was never taken
		}
		want(t, "more than the burst", c.Take("", "b", 11), access.ErrLimit)
		want(t, "the burst", c.Take("", "b", 10), nil)
		want(t, "no more than the burst", c.Take("", "b", 1), access.ErrLimit)
	})
}

func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it begins at midnight UTC
		time.Sleep(time.Hour)
		g := access.New(access.Options{Limits: access.Limits{Client: access.Limit{Quota: 10}}})
		c := from(t, g, "192.0.2.1")
		want(t, "all", c.Take("", "a", 10), nil)
		if err := c.Take("", "a", 1); after(err) != 23*time.Hour {
			t.Errorf("one more: %v, after %v", err, after(err))
		}
		if err := c.Take("", "a", 11); after(err) != 0 {
			t.Errorf("more than there are: %v, after %v; want never", err, after(err))
		}
		time.Sleep(23 * time.Hour)
		want(t, "the next day", c.Take("", "a", 10), nil)
	})
}

// A token has its own limit wherever it is used, and keeps its used part over a reload.
func TestTokenLimit(t *testing.T) {
	token, other := access.NewToken(), access.NewToken()
	file := fmt.Sprintf("tokens:\n- {name: a, hash: %q, take: ['*'], limits: {quota: 5}}\n- {name: b, hash: %q, take: ['*']}\n",
		access.HashToken(token), access.HashToken(other))
	g := gate(t, access.Options{Limits: access.Limits{Client: access.Limit{Quota: 1}}}, file)
	want(t, "its own", caller(t, g, token).Take("", "a", 5), nil)
	want(t, "usual", caller(t, g, other).Take("", "a", 2), access.ErrLimit)
	if err := g.Reload(write(t, file)); err != nil {
		t.Fatal(err)
	}
	want(t, "after a reload", caller(t, g, token).Take("", "a", 1), access.ErrLimit)
}

// The memory for clients and tags is bounded. A caller does not escape a limit by inventing keys,
// and idle entries make room.
func TestLimitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := access.New(access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"*": {Quota: 2}}}})
		c := from(t, g, "192.0.2.1")
		want(t, "used up", c.Take("", "used", 2), nil)
		for i := range access.MaxBuckets - 1 {
			want(t, "made up", c.Take("", fmt.Sprint("tag", i), 1), nil)
		}
		want(t, "no room, the last two", c.Take("", "late", 2), nil)
		want(t, "no room", c.Take("", "later", 1), access.ErrLimit)
		want(t, "used up, still", c.Take("", "used", 1), access.ErrLimit)
		want(t, "known", c.Take("", "tag0", 1), nil)
		time.Sleep(24 * time.Hour)
		want(t, "the next day", c.Take("", "later", 2), nil)
		want(t, "the next day, of its own", c.Take("", "late", 2), nil)
		if n := g.Tags(); n != access.MaxBuckets {
			t.Errorf("%d tags are kept, want %d", n, access.MaxBuckets)
		}
	})
}

// However many names callers make up, each tag has its own limit.
func TestMadeUpNamesTakeNoRoom(t *testing.T) {
	tags := map[string]bool{"used": true, "new": true, "other": true}
	g := access.New(access.Options{
		Limits: access.Limits{Tags: map[string]access.Limit{"*": {Quota: 2}}},
		HasTag: func(tag string) bool { return tags[tag] },
	})
	c := from(t, g, "192.0.2.1")
	want(t, "used up", c.Take("", "used", 2), nil)
	for i := range 2 * access.MaxBuckets {
		key := fmt.Sprint("name", i)
		want(t, "made up", c.Take("", key, 2), nil)
		if i < access.MaxBuckets {
			want(t, "a label", c.Take("uid", key, 2), nil)
		}
	}
	want(t, "used up, still", c.Take("", "used", 1), access.ErrLimit)
	want(t, "a tag not used before", c.Take("", "new", 2), nil)
	want(t, "it has its own limit", c.Take("", "new", 1), access.ErrLimit)
	want(t, "another", c.Take("ticket", "other", 2), nil)
	if n := g.Tags(); n != 3 {
		t.Errorf("%d entries of tags, want 3", n)
	}
	if n := g.Unknown(); n > access.MaxBuckets {
		t.Errorf("%d entries of other names", n)
	}
	delete(tags, "used")
	want(t, "deleted", c.Take("", "used", 1), access.ErrLimit)
}

// The IDs of a tag's first use count once the tag is known.
func TestFirstUseCounts(t *testing.T) {
	known := false
	g := access.New(access.Options{
		Limits: access.Limits{Tags: map[string]access.Limit{"*": {Quota: 5}}},
		HasTag: func(string) bool { return known },
	})
	c := from(t, g, "192.0.2.1")
	want(t, "first use", c.Take("", "order", 3), nil)
	want(t, "over the quota", c.Take("", "order", 3), access.ErrLimit)
	known = true
	want(t, "once it is known", c.Take("", "order", 3), access.ErrLimit)
	want(t, "the rest", c.Take("", "order", 2), nil)
	want(t, "one more", c.Take("", "order", 1), access.ErrLimit)
	if n := g.Unknown(); n != 0 {
		t.Errorf("%d entries of unknown names", n)
	}
}

func BenchmarkTake(b *testing.B) {
	token := access.NewToken()
	g := access.New(access.Options{Limits: access.Limits{Client: access.Limit{Rate: 1e9}}})
	path := b.TempDir() + "/tokens.yaml"
	writeFile(b, path, entry(token, `take: ["order.*"]`))
	if err := g.Reload(path); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		c, err := g.Caller(access.Credentials{Token: token})
		if err == nil {
			err = c.Take("segment", "order.a", 1)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
