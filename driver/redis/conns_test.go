package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/testserver"
)

// Connections that fell silent all at once, while new ones work, cost one call that
// waits, not one each.
func TestSilentConnections(t *testing.T) {
	p := newProxy(t, shared.Addr())
	s := newStore(t, fresh(t, "redis://"+p.addr), order)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if _, err := s.Advance(t.Context(), "order", 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	had := p.conns.Load()
	if open := p.open.Load(); open < 5 {
		t.Fatalf("%d connections stand, too few for this test", open)
	}
	p.silent.Store(had)
	call := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		_, err := s.Advance(ctx, "order", 1)
		return err
	}
	if err := call(); err == nil {
		t.Error("a silent connection answered")
	}
	if err := call(); err != nil { // it may have begun just before the connections were given up
		if err := call(); err != nil {
			t.Errorf("after two calls that failed: %v", err)
		}
	}
}

// A range returns only to the server that granted it. A server that took over without that grant
// may have granted the same IDs to another client.
func TestReturnToAnotherServer(t *testing.T) {
	first, second := testserver.Redis(t, nil), testserver.Redis(t, nil)
	p := newProxy(t, first.Addr())
	newStore(t, parse(t, first.URL()), order)
	s, other := openStore(t, parse(t, "redis://"+p.addr)), newStore(t, parse(t, second.URL()), order)
	mine, theirs := advance(t, s, 100), advance(t, other, 100)
	if mine.Range != theirs.Range {
		t.Fatalf("granted %v and %v, want the same", mine.Range, theirs.Range)
	}
	addr := second.Addr()
	p.upstream.Store(&addr)
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); p.open.Load() > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the connections to the first server stay")
		}
	}
	if err := s.Return(t.Context(), "order", mine, 51); err == nil {
		t.Error("another server took back what it had not granted")
	}
	if got := advance(t, other, 1).Range; got.Start != theirs.Range.End {
		t.Errorf("got %v, want it behind %v", got, theirs.Range)
	}
}

// The library itself closes connections to a replaced server: callers get that reason, not a socket
// error.
func TestCallDuringSwitchOver(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	s := newStore(t, parse(t, p.URL()), order)
	advance(t, s, 10)
	must(t, p.CatchUp())
	if err := p.Primary.Pause(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Advance(t.Context(), "order", 10)
		done <- err
	}()
	time.Sleep(100 * time.Millisecond) // by now the call is under way, most likely
	must(t, p.SwitchOver())
	err := <-done
	if err == nil || !strings.Contains(err.Error(), "another server has taken over") || strings.Contains(err.Error(), "closed network connection") {
		t.Errorf("got %v", err)
	}
}

func TestCloseDuringCall(t *testing.T) {
	server := testserver.Redis(t, nil)
	newStore(t, parse(t, server.URL()), order)
	db := open(t, parse(t, server.URL()))
	s := db.Store()
	advance(t, s, 10)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Advance(t.Context(), "order", 10)
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if !errors.Is(err, leaf.ErrClosed) {
				t.Errorf("got %v, want one that wraps ErrClosed", err)
			}
			return
		case <-time.After(100 * time.Millisecond): // by now the call is under way, most likely
			_ = db.Close()
		}
	}
}
