package ticket_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A logbook is a log that tests read.
type logbook struct{ testserver.Output }

func (l *logbook) count(what string) int { return strings.Count(l.String(), what) }

func (l *logbook) options() *ticket.Options {
	return &ticket.Options{Logger: slog.New(slog.NewTextHandler(l, nil)), Timeout: 5 * time.Second}
}

// drawFrom draws until each of the sources has answered, and then no other answers.
func drawFrom(t *testing.T, s *ticket.Store, got *drivertest.Ranges, sources ...string) {
	t.Helper()
	missing := make(map[string]bool)
	for _, source := range sources {
		missing[source] = true
	}
	for deadline := time.Now().Add(40 * time.Second); len(missing) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("servers %v do not answer", missing)
		}
		delete(missing, draw(t.Context(), t, s, 3, got).Source)
	}
}

func TestDeadServerIsSkippedAndPutBack(t *testing.T) {
	own := ownServer(t)
	for _, layout := range []ticket.Layout{{}, {Stride: 10}} {
		s := newSet(t, shared[0], own)
		initSet(t, s.servers(t), layout, order)
		var log logbook
		store := open(t, s.servers(t), layout, log.options())
		var got drivertest.Ranges
		drawFrom(t, store, &got, "1", "2")
		for _, end := range []func() error{own.Kill, own.Stop} {
			if err := end(); err != nil {
				t.Fatal(err)
			}
			for range 50 { // not one call fails
				if g := draw(t.Context(), t, store, 3, &got); g.Source != "1" {
					t.Errorf("a dead server drew %+v", g)
				}
			}
			if err := own.Start(); err != nil {
				t.Fatal(err)
			}
			drawFrom(t, store, &got, "2")
		}
		if err := got.Check(); err != nil {
			t.Error(err)
		}
		if n := log.count("ticket server left out"); n < 2 || n > 12 {
			t.Errorf("%d lines on a server left out\n%s", n, log.String())
		}
		if log.count("ticket server put back") < 2 {
			t.Errorf("no line on a server put back\n%s", log.String())
		}
	}
}

// A server that a power cut may set back is warned about.
func TestServerThatForgets(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--log-bin=binlog", "--server-id=1"}})
	s := newSet(t, server)
	initSet(t, s.servers(t), ticket.Layout{}, order)
	for variable, value := range map[string]string{"sync_binlog": "0", "innodb_flush_log_at_trx_commit": "2"} {
		server.Exec(t, "", "SET GLOBAL sync_binlog = 1, GLOBAL innodb_flush_log_at_trx_commit = 1", "SET GLOBAL "+variable+" = "+value)
		var log logbook
		var got drivertest.Ranges
		draw(t.Context(), t, open(t, s.servers(t), ticket.Layout{}, log.options()), 1, &got)
		if log.count("power cut") != 1 || log.count("set "+variable+"=1 on the server") != 1 {
			t.Errorf("%s=%s: the log does not warn of it alone:\n%s", variable, value, log.String())
		}
	}
}

// Calls whose time passes in this process's own queue say nothing of the server.
func TestQueueIsNoFailure(t *testing.T) {
	s := newSet(t, shared[0])
	initSet(t, s.servers(t), ticket.Layout{}, order)
	var log logbook
	opts := log.options()
	opts.Timeout = time.Second
	store := open(t, s.servers(t), ticket.Layout{}, opts)
	var got drivertest.Ranges
	draw(t.Context(), t, store, 1, &got)
	s.exec(t, 1, "CREATE TRIGGER slow BEFORE INSERT ON Tickets64 FOR EACH ROW SET @slept = SLEEP(0.03)")
	var failed atomic.Int64
	var wg sync.WaitGroup
	for range 80 {
		wg.Go(func() {
			g, err := store.Advance(t.Context(), "order", 1)
			if err != nil {
				failed.Add(1)
				return
			}
			got.Add(g.Range)
		})
	}
	wg.Wait()
	if failed.Load() == 0 {
		t.Error("no call waited too long: nothing is tested")
	}
	if log.count("ticket server left out") > 0 {
		t.Errorf("a healthy server was left out:\n%s", log.String())
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

// A server that hangs costs the calls of that moment a fifth of its time limit, and the
// others nothing.
func TestHangingServer(t *testing.T) {
	const limit = 8 * time.Second
	own := ownServer(t)
	for _, layout := range []ticket.Layout{{}, {Stride: 10}} {
		s := newSet(t, shared[0], own)
		initSet(t, s.servers(t), layout, order)
		store := open(t, s.servers(t), layout, &ticket.Options{Timeout: limit})
		var got drivertest.Ranges
		drawFrom(t, store, &got, "1", "2")
		if err := own.Pause(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var longest [8]time.Duration
		for i := range longest {
			wg.Go(func() {
				for range 20 {
					begun := time.Now()
					g, err := store.Advance(context.Background(), "order", 3)
					if err != nil {
						t.Errorf("%v: %v", layout, err)
						continue
					}
					got.Add(g.Range)
					longest[i] = max(longest[i], time.Since(begun))
				}
			})
		}
		wg.Wait()
		if err := own.Resume(); err != nil {
			t.Fatal(err)
		}
		if waited := slices.Max(longest[:]); waited >= limit {
			t.Errorf("%v: a call took %v: %v", layout, waited, longest)
		}
		drawFrom(t, store, &got, "2")
		if err := got.Check(); err != nil { // IDs of unheard answers are lost
			t.Error(err)
		}
	}
}

// All servers freeze for longer than the time-out of a server that has an alternative.
func TestSlowServersAreWaitedFor(t *testing.T) {
	own := ownServer(t)
	s := newSet(t, own, own)
	initSet(t, s.servers(t), ticket.Layout{Stride: 10}, order)
	store := open(t, s.servers(t), ticket.Layout{Stride: 10}, &ticket.Options{Timeout: 5 * time.Second})
	var got drivertest.Ranges
	drawFrom(t, store, &got, "1", "2")
	if err := own.Pause(); err != nil {
		t.Fatal(err)
	}
	resumed := make(chan error, 1)
	time.AfterFunc(2500*time.Millisecond, func() { resumed <- own.Resume() })
	draw(t.Context(), t, store, 3, &got)
	if err := <-resumed; err != nil {
		t.Error(err)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

func TestAllServersDead(t *testing.T) {
	own := ownServer(t)
	s := newSet(t, own, own)
	initSet(t, s.servers(t), ticket.Layout{}, order)
	store := open(t, s.servers(t), ticket.Layout{}, patient)
	var got drivertest.Ranges
	draw(t.Context(), t, store, 1, &got)
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := store.Advance(t.Context(), "order", 1)
		if err == nil || errors.Is(err, leaf.ErrUnknownTag) {
			t.Fatalf("all dead: %v", err)
		}
		for _, want := range []string{"no ticket server is fit for use", "server1/", "server2/"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v: does not say %q", err, want)
			}
		}
	}
	if _, err := store.Alter(t.Context(), "order", changeOf(5)); err == nil || !strings.Contains(err.Error(), "no server answers there") {
		t.Errorf("alter: %v", err)
	}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	drawFrom(t, store, &got, "1", "2")
	if err := got.Check(); err != nil {
		t.Error(err)
	}
}

// Clients draw all the time while one server at a time is killed and comes back.
func TestKillOneAtATime(t *testing.T) {
	hosts := []*testserver.MariaDBServer{ownServer(t), ownServer(t)}
	for _, layout := range []ticket.Layout{{}, {Stride: 50}} {
		t.Run(fmt.Sprint(layout), func(t *testing.T) { killOneAtATime(t, layout, newSet(t, hosts...)) })
	}
}

func killOneAtATime(t *testing.T, layout ticket.Layout, s set) {
	initSet(t, s.servers(t), layout, order)
	const clients = 4
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got drivertest.Ranges
	var wg sync.WaitGroup
	failed := make([]int, clients)
	sources := make([]map[string]int, clients)
	for i := range clients {
		store := open(t, s.servers(t), layout, &ticket.Options{Timeout: 5 * time.Second})
		sources[i] = make(map[string]int)
		wg.Go(func() {
			for n := int64(1); ctx.Err() == nil; n = n%60 + 1 {
				g, err := store.Advance(context.Background(), "order", n)
				if err != nil {
					failed[i]++
					continue
				}
				got.Add(g.Range)
				sources[i][g.Source]++
			}
		})
	}
	watch := open(t, s.servers(t), layout, nil)
	for round := range 4 {
		victim := round % 2
		if err := s.hosts[victim].Kill(); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			draw(t.Context(), t, watch, 1, &got)
		}
		if err := s.hosts[victim].Start(); err != nil {
			t.Fatal(err)
		}
		drawFrom(t, watch, &got, "1", "2")
	}
	cancel()
	wg.Wait()
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	t.Logf("%d IDs in %d grants, calls that failed %v, by server %v", got.Count(), len(got.Sorted()), failed, sources)
	if len(got.Sorted()) < 200 {
		t.Errorf("only %d grants", len(got.Sorted()))
	}
}

// An operator gives one server the wrong steps: a draw by hand there takes the other
// server's tickets. Leaf's own draws are not touched by it, and stop there.
func TestWrongIncrement(t *testing.T) {
	testserver.Long(t)
	own := ownServer(t)
	s := newSet(t, shared[0], own)
	initSet(t, s.servers(t), ticket.Layout{}, order)
	var log logbook
	store := open(t, s.servers(t), ticket.Layout{}, log.options())
	var got drivertest.Ranges
	drawFrom(t, store, &got, "1", "2")
	for _, wrong := range []string{"auto_increment_increment = 3, GLOBAL auto_increment_offset = 1", "auto_increment_increment = 2, GLOBAL auto_increment_offset = 1"} {
		own.Exec(t, "", "SET GLOBAL "+wrong)
		for range 20 {
			if g := draw(t.Context(), t, store, 1, &got); g.Source != "1" {
				t.Errorf("%s: drew %+v", wrong, g)
			}
		}
		if log.count("auto_increment_increment") == 0 {
			t.Errorf("%s: no line about it", wrong)
		}
		own.Exec(t, "", "SET GLOBAL auto_increment_increment = 2, GLOBAL auto_increment_offset = 2")
		drawFrom(t, store, &got, "2")
	}
	own.Exec(t, "", "SET GLOBAL auto_increment_increment = 3")
	alone := open(t, s.servers(t), ticket.Layout{}, log.options())
	if err := shared[0].Pause(); err != nil {
		t.Fatal(err)
	}
	defer shared[0].Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := alone.Advance(ctx, "order", 1); err == nil || !strings.Contains(err.Error(), "set them to 2 and 2") {
		t.Errorf("only the wrong one is left: %v", err)
	}
}
