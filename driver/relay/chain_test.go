package relay_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Calls for two tags at once get the ranges and steps of their own tags.
func TestTagsAtOnce(t *testing.T) {
	far := segment.Tag{Name: "far", MaxID: 1 << 40, Step: 50}
	s := open(t, nil, testleaf.Start(t, testleaf.Options{Store: newStore(t, order, far)})).Store()
	var all sync.WaitGroup
	for _, tag := range []segment.Tag{order, far} {
		all.Go(func() {
			for range 100 {
				g, err := s.Advance(t.Context(), tag.Name, 10)
				if err != nil || g.Step != tag.Step || g.Range.Start>>40 != tag.MaxID>>40 {
					t.Errorf("%s: %+v, %v", tag.Name, g, err)
				}
			}
		})
	}
	all.Wait()
}

// The unused end of two ranges goes back once, to the server that granted them, although another
// one has answered since.
func TestReturn(t *testing.T) {
	store := newStore(t, order)
	servers := map[string]*testleaf.Server{}
	for range 2 {
		server := testleaf.Start(t, testleaf.Options{Store: store})
		servers[server.Host()] = server
	}
	var both []*testleaf.Server
	for _, server := range servers {
		both = append(both, server)
	}
	s := open(t, nil, both...).Store()
	advance := func() segment.Grant {
		t.Helper()
		g, err := s.Advance(t.Context(), "order", 10)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	first, second := advance(), advance()
	origin := servers[first.Source]
	if second.Source != first.Source || second.Range.Start != first.Range.End {
		t.Fatalf("got %+v after %+v", second, first)
	}
	origin.Stop()
	if other := advance(); other.Source == first.Source {
		t.Fatal("a stopped server answered")
	}
	origin.Resume(t)
	start := first.Range.Start + 5
	if err := s.Return(t.Context(), "order", second, start); err != nil {
		t.Fatal(err)
	}
	for host, server := range servers {
		if n := server.Calls("Return"); n != 1 && server == origin || n != 0 && server != origin {
			t.Errorf("server %s, of which %v is asked, received %d returns", host, origin.Host(), n)
		}
	}
	want := leaf.Range{Start: start, End: second.Range.End}
	if g, err := open(t, nil, origin).Store().Advance(t.Context(), "order", 15); err != nil || g.Range != want {
		t.Errorf("next: %v, %v, want %v", g.Range, err, want)
	}
}

// A call for a strict tag asks one server at a time, not another one soon: a late answer would be a gap.
func TestStrictAsksOneServer(t *testing.T) {
	strict := order
	strict.Options = segment.TagOptions{segment.OptionOrder: segment.OrderStrict}
	store := newStore(t, strict)
	a, b := testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})
	s := open(t, nil, a, b).Store()
	g, err := s.AdvanceStrict(t.Context(), "order", "", 3)
	if err != nil || g.Range.Len() != 3 {
		t.Fatalf("got %+v, %v", g, err)
	}
	if g.Source == b.Host() {
		a, b = b, a
	}
	a.Hold()
	defer a.Release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if g, err := s.AdvanceStrict(ctx, "order", "", 3); err == nil {
		t.Errorf("a held server answered %+v", g)
	}
	if n := b.Calls("Advance"); n != 0 {
		t.Errorf("another server received %d calls", n)
	}
}

// A relay names what is wrong with a period, in the words of the server, and not where that server is.
func TestBadPeriod(t *testing.T) {
	weekly := order
	weekly.Options = segment.TagOptions{segment.OptionPeriod: "week"}
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t, weekly)})
	behind := testleaf.Start(t, testleaf.Options{Store: open(t, nil, server).Store()})
	_, err := open(t, nil, behind).Store().AdvanceStrict(t.Context(), "order", "2026-11-25", 1)
	want := `no period begins on 2026-11-25: that day's period is 2026-11-23`
	if !errors.Is(err, leaf.ErrInvalid) || !strings.HasSuffix(err.Error(), want) || strings.Count(err.Error(), leaf.ErrInvalid.Error()) != 1 ||
		strings.Contains(err.Error(), server.Host()) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// The server epoch of the registry at the end of a chain arrives as it is.
func TestServerEpoch(t *testing.T) {
	for _, want := range []worker.ServerEpoch{{}, {Lossy: true, Incarnation: "one"}, {Lossy: true, Untracked: true}} {
		server := testleaf.Start(t, testleaf.Options{Registry: epochRegistry{memory.New().Registry(), want}})
		server = testleaf.Start(t, testleaf.Options{Registry: open(t, nil, server).Registry()})
		if got, err := open(t, nil, server).Registry().ServerEpoch(t.Context()); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

// A missing registry at the end of a chain is told from one that is away.
func TestRegistryNotCreated(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Registry: noRegistry{memory.New().Registry()}})
	server = testleaf.Start(t, testleaf.Options{Registry: open(t, nil, server).Registry()})
	if _, err := open(t, nil, server).Registry().List(t.Context()); !errors.Is(err, worker.ErrNotCreated) {
		t.Errorf("got %v, want %v", err, worker.ErrNotCreated)
	}
	server = testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	if _, err := open(t, nil, server).Registry().List(t.Context()); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("of a server without worker IDs: got %v, want %v", err, leaf.ErrUnsupported)
	}
}

type noRegistry struct{ worker.Registry }

func (noRegistry) List(context.Context) ([]worker.Record, error) { return nil, worker.ErrNotCreated }

type epochRegistry struct {
	worker.Registry
	epoch worker.ServerEpoch
}

// ServerEpoch implements [worker.LossyRegistry].
func (r epochRegistry) ServerEpoch(context.Context) (worker.ServerEpoch, error) { return r.epoch, nil }

// A server of another store takes no tag away: neither by its listing nor by not knowing it.
func TestServerOfAnotherStore(t *testing.T) {
	mine := testleaf.Start(t, testleaf.Options{Store: newStore(t, order)})
	other := testleaf.Start(t, testleaf.Options{Store: newStore(t, segment.Tag{Name: "foreign", MaxID: 1, Step: 10})})
	if _, err := other.Set.Next(t.Context(), "foreign"); err != nil { // it knows its store from now on
		t.Fatal(err)
	}
	if _, err := mine.Set.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	for range 10 { // each begins with any of the servers
		s := open(t, nil, mine, other).Store()
		s.Expect(mine.Set.StoreID())
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Error(err)
		}
		s = open(t, nil, mine, other).Store()
		s.Expect(mine.Set.StoreID())
		for tag, err := range s.Tags(t.Context()) {
			if err != nil || tag.Name != "order" {
				t.Errorf("listed %q, %v", tag.Name, err)
			}
		}
	}
}
