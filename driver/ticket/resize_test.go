package ticket_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

var errCrash = errors.New("the machine stops")

func layouts() []ticket.Layout {
	return []ticket.Layout{{}, {TablePerTag: true}, {Stride: 10}}
}

func changeOf(step int64) segment.Change { return segment.Change{Step: &step} }

// keepDrawing runs clients of the two old servers until the caller ends them. Each client also
// tries newly opened stores.
func keepDrawing(t *testing.T, s set, layout ticket.Layout, got *drivertest.Ranges) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 3 {
		store := open(t, s.servers(t, 1, 2), layout, patient)
		wg.Go(func() {
			for ctx.Err() == nil {
				if g, err := store.Advance(ctx, "order", 3); err == nil {
					got.Add(g.Range)
				}
			}
		})
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

// A resize dies at the places that leave the servers different, while old clients continue if they
// can. After a second run no ID comes twice.
func TestResizeDiesHalfWay(t *testing.T) {
	testserver.Long(t)
	for _, layout := range layouts() {
		for _, stage := range []string{"prepare server3", "stop server1", "lift server1", "start server1", "start server2"} {
			t.Run(layout.String()+"/"+stage, func(t *testing.T) { resizeDies(t, layout, stage) })
		}
	}
}

func resizeDies(t *testing.T, layout ticket.Layout, stage string) {
	s := newSet(t, shared[:]...)
	initSet(t, s.servers(t, 1, 2), layout, order)
	var got drivertest.Ranges
	first := open(t, s.servers(t, 1, 2), layout, patient)
	for range 20 {
		draw(t.Context(), t, first, 7, &got)
	}
	stop := keepDrawing(t, s, layout, &got)
	defer stop()
	err := ticket.ResizeUntil(t.Context(), s.servers(t), layout, ticket.ResizeOptions{}, func(at string) error {
		if at == stage || strings.HasPrefix(at, stage+"/") {
			return errCrash
		}
		return nil
	})
	if !errors.Is(err, errCrash) {
		t.Fatalf("the resize did not come to %q: %v", stage, err)
	}
	// A client that uses the set as it is now draws, or is refused; both are safe.
	for _, servers := range [][]ticket.Server{s.servers(t), s.servers(t, 1, 2), s.servers(t, 2, 3)} {
		halfWay := open(t, servers, layout, patient)
		for range 6 {
			if g, err := halfWay.Advance(t.Context(), "order", 4); err == nil {
				got.Add(g.Range)
			}
		}
	}
	if err := resize(t.Context(), s.servers(t), layout, nil); err != nil {
		t.Fatal(err)
	}
	after := open(t, s.servers(t), layout, patient)
	drawFrom(t, after, &got, "1", "2", "3")
	for range 20 {
		draw(t.Context(), t, after, 7, &got)
	}
	stop()
	if _, err := first.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "resize") {
		t.Errorf("a client of the old set: %v", err)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

func TestResizeLiftsAboveTheHighest(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:]...)
		initSet(t, s.servers(t, 1, 2), layout, order, segment.Tag{Name: "user", MaxID: 500, Step: 7, Options: segment.Describe("x")})
		one := open(t, s.servers(t, 1, 2), layout, patient)
		if err := one.Lift(t.Context(), "order", "2", 1); err == nil {
			t.Errorf("%v: lifted a server that has not answered", layout)
		}
		var got drivertest.Ranges
		drawFrom(t, one, &got, "1", "2")
		if err := one.Lift(t.Context(), "order", "2", 70_000); err != nil {
			t.Fatal(err)
		}
		drawFrom(t, one, &got, "1", "2")
		if err := resize(t.Context(), s.servers(t), layout, nil); err != nil {
			t.Fatal(err)
		}
		three := open(t, s.servers(t), layout, patient)
		for range 9 {
			if g := draw(t.Context(), t, three, 1, &got); g.Range.Start < 70_000 {
				t.Errorf("%v: %+v", layout, g)
			}
		}
		for range 3 { // on each server
			g, err := three.Advance(t.Context(), "user", 1)
			if err != nil || g.Range.Start < 500 || g.Step != 7 {
				t.Errorf("%v: the other tag: %+v, %v", layout, g, err)
			}
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}

// From three servers to two, and back to three with the removed one.
func TestResizeTakesOutAndIn(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:]...)
		initSet(t, s.servers(t), layout, order)
		var got drivertest.Ranges
		old := open(t, s.servers(t), layout, patient)
		drawFrom(t, old, &got, "1", "2", "3")
		if err := resize(t.Context(), s.servers(t, 1, 2), layout, nil); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), "number 3") {
			t.Errorf("%v: without the third: %v", layout, err)
		}
		drawFrom(t, old, &got, "1", "2", "3")
		if err := resize(t.Context(), s.servers(t, 3, 1), layout, &ticket.ResizeOptions{Retired: s.servers(t, 2)}); err != nil {
			t.Fatal(err)
		}
		two := open(t, s.servers(t, 1, 3), layout, patient)
		drawFrom(t, two, &got, "1", "2")
		wrong := open(t, s.servers(t, 1, 2), layout, patient)
		for range 4 {
			if g, err := wrong.Advance(t.Context(), "order", 1); err != nil || g.Source != "2" {
				t.Errorf("%v: with the one taken out: %+v, %v", layout, g, err)
			} else {
				got.Add(g.Range)
			}
		}
		if err := resize(t.Context(), s.servers(t), layout, nil); err != nil {
			t.Fatal(err)
		}
		drawFrom(t, open(t, s.servers(t), layout, patient), &got, "1", "2", "3")
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestInit(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:2]...)
		servers := s.servers(t)
		if ok, err := exists(t.Context(), servers); ok || err != nil {
			t.Errorf("%v: exists before init: %v, %v", layout, ok, err)
		}
		if err := resize(t.Context(), servers, layout, nil); !errors.Is(err, segment.ErrNotCreated) {
			t.Errorf("%v: resize before init: %v", layout, err)
		}
		store := open(t, servers, layout, patient)
		if _, err := store.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
			t.Errorf("%v: advance before init: %v", layout, err)
		}
		if err := initTickets(t.Context(), servers, layout, []segment.Tag{order, order}); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%v: a tag twice: %v", layout, err)
		}
		initSet(t, servers, layout, order)
		if ok, err := exists(t.Context(), servers[1:]); !ok || err != nil {
			t.Errorf("%v: exists after init: %v, %v", layout, ok, err)
		}
		for _, again := range [][]ticket.Server{servers, servers[1:], s.servers(t, 2, 1)} {
			if err := initTickets(t.Context(), again, layout, nil); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%v: second init: %v", layout, err)
			}
		}
		var got drivertest.Ranges
		drawFrom(t, store, &got, "1", "2")
	}
}

// After the resize has read the counters, no client of the old set moves them, neither an old one
// nor a new one.
func TestResizeStopsOldClients(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:]...)
		initSet(t, s.servers(t, 1, 2), layout, order)
		old, idle := open(t, s.servers(t, 1, 2), layout, patient), open(t, s.servers(t, 1, 2), layout, patient)
		var got drivertest.Ranges
		drawFrom(t, old, &got, "1", "2")
		drawFrom(t, idle, &got, "1", "2")
		refused := 0
		err := ticket.ResizeUntil(t.Context(), s.servers(t), layout, ticket.ResizeOptions{}, func(step string) error {
			stage, server, _ := strings.Cut(step, " ")
			if stage != "read" && (stage != "stop" && stage != "lift" || !strings.HasPrefix(server, "server3/")) {
				return nil
			}
			clients := []*ticket.Store{old, open(t, s.servers(t, 1, 2), layout, patient), open(t, s.servers(t), layout, patient)}
			if stage == "lift" {
				clients = append(clients, idle) // it knows nothing of the resize yet
			}
			for _, client := range clients {
				if g, err := client.Advance(t.Context(), "order", 1); err == nil {
					t.Errorf("%v: drew %+v after %q", layout, g, stage)
				}
				refused++
			}
			return nil
		})
		if err != nil || refused != 10 {
			t.Errorf("%v: %d, %v", layout, refused, err)
		}
		drawFrom(t, open(t, s.servers(t), layout, patient), &got, "1", "2", "3")
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}
