package nats_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A server whose password is another one for a while is used again once it is right.
func TestPasswordChanged(t *testing.T) {
	server := testserver.NATS(t)
	o := newOptions()
	refused := make(chan struct{}, 64)
	o.Connect = []nats.Option{nats.UserInfo("leaf", "right"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrAuthorization) {
			refused <- struct{}{}
		}
	})}
	s := create(t, server.URL(), o, order).Store()
	for _, password := range []string{"wrong", "right"} {
		server.Args = []string{"--user", "leaf", "--pass", password}
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		if password == "right" {
			break
		}
		for i := range 3 { // by default the client gives up after two
			select {
			case <-refused:
			case <-time.After(10 * time.Second):
				t.Fatalf("the client gave up after %d refusals", i)
			}
		}
		if _, err := s.Advance(t.Context(), order.Name, 1); err == nil {
			t.Error("an allocation with a wrong password")
		}
	}
	reconnected(t, func() error { _, err := s.Advance(t.Context(), order.Name, 1); return err })
}

// A connection that the client has closed for good is replaced.
func TestConnectionClosed(t *testing.T) {
	o := newOptions()
	create(t, shared.URL(), o, order)
	p := newProxy(t, shared.Addr())
	closed := make(chan struct{}, 1)
	o.Connect = []nats.Option{nats.ClosedHandler(func(*nats.Conn) { closed <- struct{}{} })}
	db := open(t, "nats://"+p.addr, o)
	advance := func() error { _, err := db.Store().Advance(t.Context(), order.Name, 1); return err }
	if err := advance(); err != nil {
		t.Fatal(err)
	}
	p.odd.Store(true)
	_ = advance() // the client may have closed its connection before the answer
	<-closed
	if err := advance(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	<-closed
	if err := advance(); err == nil {
		t.Error("an allocation after Close")
	}
}

// Calls and Close do not wait for silent hosts.
func TestSilentHosts(t *testing.T) {
	var hosts []string
	for range 3 {
		hosts = append(hosts, testserver.Proxy(t, func(client net.Conn) {
			_, _ = io.Copy(io.Discard, client)
		}))
	}
	db := open(t, "nats://"+strings.Join(hosts, ",nats://"), nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := db.Store().Advance(ctx, order.Name, 1)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), hosts[0]) {
		t.Errorf("advance: %v", err)
	}
	second := make(chan error, 1)
	go func() { _, err := db.Store().Advance(t.Context(), order.Name, 1); second <- err }()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if err := <-second; err == nil {
		t.Error("a call that waited for a connection had one after Close")
	}
	if took := time.Since(began); took > 4*time.Second { // the hosts take 2 s each
		t.Errorf("a call of 50 ms and Close took %v", took)
	}
}
