package server_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server"
)

func withRESP(o *server.Options) { o.Config.RESP = "127.0.0.1:0" }

// dialRESP connects to the server's Redis protocol.
func (r *running) dialRESP(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", r.resp)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

func TestRedisProtocol(t *testing.T) {
	r := run(t, nil, withRESP)
	conn, reader := r.dialRESP(t)
	for want := range 3 {
		fmt.Fprint(conn, "INCR order\r\n")
		if got, err := reader.ReadString('\n'); got != fmt.Sprintf(":%d\r\n", want+1) {
			t.Fatalf("INCR: %q, %v", got, err)
		}
	}
	r.want(t, "/api/segment/get/order", 200, "4")
	status, err := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr).Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || len(status.GetPorts()) != 1 || status.GetPorts()[0].GetAddress() != r.resp {
		t.Errorf("Status: %v, %v", status, err)
	}
	until(t, "logs its address", func() bool { return strings.Contains(r.log.String(), " resp="+r.resp+" ") })
	r.stop()
	if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
		t.Errorf("after the stop: %q, %v", rest, err)
	}
	r.wantStop(t)
	if _, err := net.Dial("tcp", r.resp); err == nil {
		t.Error("still accepts connections")
	}
}

// A command that waits for the store when the stop begins is answered, or told why not.
func TestStopWaitsForCommands(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		r, release := runHeld(t, func(o *server.Options) {
			withRESP(o)
			if !answered {
				o.Config.ShutdownTimeout = time.Second
			}
		})
		conn, reader := r.dialRESP(t)
		fmt.Fprint(conn, "PING\r\nINCR order\r\n")
		if got, err := reader.ReadString('\n'); got != "+PONG\r\n" {
			t.Fatalf("PING, before a command that waits: %q, %v", got, err)
		}
		r.wantWaiting(t)
		r.stop()
		until(t, "closed for new connections", func() bool { _, err := net.Dial("tcp", r.resp); return err != nil })
		want := "-TRYAGAIN "
		if answered {
			release()
			want = ":1\r\n"
		}
		if got, err := reader.ReadString('\n'); !strings.HasPrefix(got, want) {
			t.Errorf("INCR: %q, %v; want %q", got, err, want)
		}
		if rest, err := io.ReadAll(reader); err != nil || len(rest) > 0 {
			t.Errorf("after the answer: %q, %v", rest, err)
		}
		r.wantStop(t)
	}
}

// With start_wait both ports open late.
func TestStartWaitOfRedisProtocol(t *testing.T) {
	hold := make(chan struct{})
	unlisted := drivertest.Only(drivertest.OpTags, drivertest.Fault{Hold: hold})
	r := run(t, unlisted, func(o *server.Options) { withRESP(o); o.Config.StartWait = time.Minute })
	if _, err := net.Dial("tcp", r.resp); err == nil {
		t.Error("the port is open before the server is ready")
	}
	close(hold)
	until(t, "the port is open", func() bool {
		conn, err := net.Dial("tcp", r.resp)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func TestRedisPortTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	opts := server.Options{Config: segmentOnly(t), Store: storeBackend(memory.New().Store())}
	closed := false
	opts.Store.DB = onClose(func() { closed = true })
	opts.Config.RESP = taken.Addr().String()
	_, err = server.New(t.Context(), opts)
	if port, ok := errors.AsType[*server.PortError](err); !ok || port.FrontEnd.Key != "resp" || !strings.Contains(err.Error(), opts.Config.RESP) || !closed {
		t.Errorf("%v; the store was closed: %v", err, closed)
	}
}

// A second server on a machine starts, because nobody chose the default port.
func TestDefaultRedisPortTaken(t *testing.T) {
	address := config.Default().RESP
	if taken, err := net.Listen("tcp", address); err == nil {
		defer taken.Close()
	} else if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatal(err)
	}
	r := run(t, nil, func(o *server.Options) { o.Config.RESP = address })
	r.want(t, "/api/segment/get/order", 200, "1")
	if got := r.log.String(); !strings.Contains(got, "without that protocol") || !strings.Contains(got, address) {
		t.Errorf("logged %s", got)
	}
	status, err := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr).Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || len(status.GetPorts()) > 0 {
		t.Errorf("Status: %v, %v", status, err)
	}
}

// The default port is taken while the server waits for its schemes.
func TestDefaultRedisPortTakenAtTheStart(t *testing.T) {
	address := config.Default().RESP
	hold := make(chan struct{})
	unlisted := drivertest.Only(drivertest.OpTags, drivertest.Fault{Hold: hold})
	r := run(t, unlisted, func(o *server.Options) { o.Config.RESP, o.Config.StartWait = address, time.Minute })
	if taken, err := net.Listen("tcp", address); err == nil {
		defer taken.Close()
	} else if !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatal(err)
	}
	close(hold)
	until(t, "serves", func() bool { return strings.Contains(r.log.String(), "msg=serving") })
	if got := r.log.String(); !strings.Contains(got, "without that protocol") || strings.Contains(got, " resp=") {
		t.Errorf("logged %s", got)
	}
	r.want(t, "/api/segment/get/order", 200, "1")
}

// With certificates, the Redis protocol is encrypted too.
func TestRedisProtocolWithTLS(t *testing.T) {
	e := runTLS(t, withRESP)
	conn, err := tls.Dial("tcp", e.resp, &tls.Config{RootCAs: e.root.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for want := range 100 {
		fmt.Fprint(conn, "INCR order\r\n")
		if got, err := reader.ReadString('\n'); got != fmt.Sprintf(":%d\r\n", want+1) {
			t.Fatalf("INCR: %q, %v", got, err)
		}
	}
	plain, answer := e.dialRESP(t)
	fmt.Fprint(plain, "INCR order\r\n")
	if got, _ := answer.ReadString('\n'); strings.HasPrefix(got, ":") {
		t.Errorf("without TLS: %q", got)
	}
}
