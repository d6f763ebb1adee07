package ticket_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/segment"
)

// lose destroys the data of a server of the set and creates its database again.
func (s set) lose(t *testing.T, number int) {
	t.Helper()
	name := s.databases[number-1]
	s.hosts[number-1].Exec(t, "", "DROP DATABASE "+name, "CREATE DATABASE "+name)
}

// lostName is what people call a server of the set.
func (s set) lostName(number int) []string { return []string{fmt.Sprintf("server%d", number)} }

// aheadSet is a used set of three. Its second server is far ahead of the others, and then loses its
// data.
func aheadSet(t *testing.T, layout ticket.Layout, got *drivertest.Ranges) (set, *ticket.Store) {
	t.Helper()
	s := newSet(t, shared[:]...)
	initSet(t, s.servers(t), layout, order)
	old := open(t, s.servers(t), layout, patient)
	drawFrom(t, old, got, "1", "2", "3")
	if err := old.Lift(t.Context(), "order", "2", 100); err != nil {
		t.Fatal(err)
	}
	for range 45 {
		draw(t.Context(), t, old, 3, got)
	}
	s.lose(t, 2)
	return s, old
}

// After a resize without, or with an emptied server, no ID comes twice.
func TestResizeWithoutALostServer(t *testing.T) {
	for _, layout := range layouts() {
		for name, stay := range map[string][]int{"removed": {1, 3}, "replaced": {1, 2, 3}} {
			t.Run(layout.String()+"/"+name, func(t *testing.T) {
				var got drivertest.Ranges
				s, old := aheadSet(t, layout, &got)
				if err := resize(t.Context(), s.servers(t, stay...), layout, nil); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), "number 2 that was not named") {
					t.Fatalf("without a word of the lost one: %v", err)
				}
				if err := resize(t.Context(), s.servers(t, stay...), layout, &ticket.ResizeOptions{Lost: s.lostName(2)}); err != nil {
					t.Fatal(err)
				}
				after := open(t, s.servers(t, stay...), layout, patient)
				for range 120 {
					draw(t.Context(), t, after, 3, &got)
				}
				if _, err := old.Advance(t.Context(), "order", 1); len(stay) < 3 && err == nil {
					t.Error("a client of the old set draws")
				}
				if err := got.Check(); err != nil {
					t.Error(err)
				}
				if err := resize(t.Context(), s.servers(t, stay...), layout, nil); err != nil {
					t.Errorf("a resize of the new set: %v", err)
				}
			})
		}
	}
}

// Where it dies half-way it is run again.
func TestResizeWithoutALostServerDies(t *testing.T) {
	layout := ticket.Layout{Stride: 10}
	for _, stage := range []string{"prepare server3", "stop server1", "lift server1", "start server1", "start server2"} {
		var got drivertest.Ranges
		s, _ := aheadSet(t, layout, &got)
		opts := ticket.ResizeOptions{Lost: s.lostName(2), Jump: 1000}
		err := ticket.ResizeUntil(t.Context(), s.servers(t), layout, opts, func(at string) error {
			if at == stage || strings.HasPrefix(at, stage+"/") {
				return errCrash
			}
			return nil
		})
		if !errors.Is(err, errCrash) {
			t.Fatalf("the resize did not come to %q: %v", stage, err)
		}
		halfWay := open(t, s.servers(t), layout, patient)
		for range 6 {
			if g, err := halfWay.Advance(t.Context(), "order", 4); err == nil {
				got.Add(g.Range)
			}
		}
		if err := resize(t.Context(), s.servers(t), layout, &opts); err != nil {
			t.Fatalf("after %q: %v", stage, err)
		}
		after := open(t, s.servers(t), layout, patient)
		drawFrom(t, after, &got, "1", "2", "3")
		if err := got.Check(); err != nil {
			t.Errorf("after %q: %v", stage, err)
		}
	}
}

// A resize died after it had started the lost server in a generation that the others do not know.
// Its successor refuses a client that met it then.
func TestLostServerWasAhead(t *testing.T) {
	layout := ticket.Layout{}
	s := newSet(t, shared[:]...)
	initSet(t, s.servers(t), layout, order)
	err := ticket.ResizeUntil(t.Context(), s.servers(t), layout, ticket.ResizeOptions{}, func(at string) error {
		if strings.HasPrefix(at, "start server1/") {
			return errCrash
		}
		return nil
	})
	if !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	var got drivertest.Ranges
	old := open(t, s.servers(t), layout, patient)
	drawFrom(t, old, &got, "1")
	s.lose(t, 1)
	turned := s.servers(t, 2, 1, 3)
	if err := resize(t.Context(), turned, layout, &ticket.ResizeOptions{Lost: s.lostName(1)}); err != nil {
		t.Fatal(err)
	}
	after := open(t, turned, layout, patient)
	for range 30 {
		if g, err := old.Advance(t.Context(), "order", 1); err == nil {
			got.Add(g.Range)
		}
		draw(t.Context(), t, after, 1, &got)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

func TestLostServersAreLost(t *testing.T) {
	layout := ticket.Layout{Stride: 10}
	s := newSet(t, shared[:]...)
	initSet(t, s.servers(t), layout, order)
	lose := func(lost []string, jump int64, only ...int) error {
		return resize(t.Context(), s.servers(t, only...), layout, &ticket.ResizeOptions{Lost: lost, Jump: jump})
	}
	var got drivertest.Ranges
	store := open(t, s.servers(t), layout, patient)
	drawFrom(t, store, &got, "1", "2", "3")
	empty := newSet(t, shared[0])
	with := append(s.servers(t, 1, 2), empty.servers(t)...)
	with[2].Name = "another"
	for want, err := range map[string]error{
		"it is not lost":              resize(t.Context(), with, layout, &ticket.ResizeOptions{Lost: s.lostName(2)}),
		"and the set lacks 0":         lose(s.lostName(2), 0),
		"1 servers are called lost":   lose([]string{"elsewhere"}, 0),
		"number 3 that was not named": lose(s.lostName(2), 0, 1),
		"2 servers are called lost":   lose([]string{"server2", "server2"}, 0, 1, 3),
		"a jump of -1 IDs":            lose(s.lostName(2), -1, 1, 3),
	} {
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want one that says %q", err, want)
		}
	}
	drawFrom(t, store, &got, "1", "2", "3") // nothing was changed
	if err := lose(s.lostName(2), 1<<63-1, 1, 3); !errors.Is(err, leaf.ErrOverflow) {
		t.Errorf("a jump beyond the end: %v", err)
	}
	if err := lose(s.lostName(2), 1000, 1, 3); err != nil {
		t.Error(err)
	}
}

// A client's error about a server with lost data leads to the remedy, although the server was fit
// before.
func TestLostServerIsTold(t *testing.T) {
	for _, layout := range layouts() {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout, order)
		var log logbook
		store := open(t, s.servers(t), layout, log.options())
		var got drivertest.Ranges
		drawFrom(t, store, &got, "1", "2")
		s.lose(t, 2)
		for deadline := time.Now().Add(20 * time.Second); log.count(segment.ErrNeedsResize.Error()) == 0; draw(t.Context(), t, store, 1, &got) {
			if time.Now().After(deadline) {
				t.Fatalf("%v: the log says:\n%s", layout, log.String())
			}
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
	}
}
