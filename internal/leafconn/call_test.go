package leafconn

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/worker"
)

// The outcome of a call decides whether another server gets it.
func TestJudge(t *testing.T) {
	unknown := connect.NewWireError(connect.CodeNotFound, errors.New("x"))
	if d, err := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: "UNKNOWN_TAG"}); err == nil {
		unknown.AddDetail(d)
	}
	for name, c := range map[string]struct {
		err  error
		want rating
	}{
		"an answer":                  {nil, healthy},
		"an unknown tag":             {unknown, ignorant},
		"an unknown pool":            {connect.NewWireError(connect.CodeNotFound, errors.New("x")), healthy},
		"another token":              {connect.NewWireError(connect.CodeUnauthenticated, errors.New("x")), faulty},
		"a scheme that is off":       {connect.NewWireError(connect.CodeUnimplemented, errors.New("x")), faulty},
		"nothing left":               {connect.NewWireError(connect.CodeUnavailable, errors.New("x")), faulty},
		"a server with a defect":     {connect.NewWireError(connect.CodeInternal, errors.New("x")), faulty},
		"a store that takes long":    {connect.NewWireError(connect.CodeDeadlineExceeded, errors.New("x")), faulty},
		"no server":                  {connect.NewError(connect.CodeUnavailable, syscall.ECONNREFUSED), faulty},
		"a connection that broke":    {connect.NewError(connect.CodeCanceled, syscall.EPIPE), faulty},
		"no answer in time":          {connect.NewError(connect.CodeDeadlineExceeded, context.DeadlineExceeded), faulty},
		"a way back to this process": {hops.ErrLoop, faulty},
		"a caller that gave up":      {connect.NewError(connect.CodeCanceled, context.Canceled), none},
		"no token":                   {errors.New("read the token: no such file"), none},
	} {
		if got := judge(c.err); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A call repeats, if it may, after another call's cancellation has cut their connection.
func TestCutShort(t *testing.T) {
	for name, test := range map[string]struct {
		call func(Registry) error
		want error
	}{
		"a read": {func(r Registry) error { _, err := r.Load(t.Context(), 1); return err }, syscall.ECONNREFUSED},
		"a write": {func(r Registry) error {
			_, err := r.Swap(t.Context(), worker.Record{}, worker.Record{Worker: 1})
			return err
		}, context.DeadlineExceeded},
	} {
		c, err := Open([]string{"http://a:1"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		answers := []error{ended{context.DeadlineExceeded}, syscall.ECONNREFUSED}
		c.http.Transport = transport(func() error { err := answers[0]; answers = answers[1:]; return err })
		if err := test.call(Registry{c}); !errors.Is(err, test.want) {
			t.Errorf("%s: got error %v, want %v", name, err, test.want)
		}
		if c.servers[0].retryAt.Load() > 0 && name == "a write" {
			t.Errorf("%s: the server counts as one that failed", name)
		}
	}
}

// Other calls can recognise the end of a call's context by its error, for every cause.
func TestCallContext(t *testing.T) {
	type key struct{}
	why := errors.New("why")
	base, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
	c := callContext{base}
	below, stop := context.WithCancel(c)
	defer stop()
	if c.Err() != nil || context.Cause(below) != nil || below.Value(key{}) != "value" {
		t.Errorf("before: %v, %v, %v", c.Err(), context.Cause(below), below.Value(key{}))
	}
	cancel(why)
	<-below.Done()
	for name, err := range map[string]error{"error": c.Err(), "cause": context.Cause(c), "error below": below.Err(), "cause below": context.Cause(below)} {
		if _, is := errors.AsType[ended](err); !is || !errors.Is(err, context.Canceled) || errors.Is(err, why) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A time-out of a proxy is no cut: the call moves to another server.
func TestSlowProxy(t *testing.T) {
	c, err := Open([]string{"http://a:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	c.http.Transport = transport(func() error { calls++; return context.DeadlineExceeded })
	if _, err := (Registry{c}).Load(t.Context(), 1); err == nil || calls != 1 || c.servers[0].fails.Load() != 1 {
		t.Errorf("got error %v after %d calls, %d failures", err, calls, c.servers[0].fails.Load())
	}
}

type transport func() error

func (t transport) RoundTrip(*http.Request) (*http.Response, error) { return nil, t() }

// A caller that gives up does not clear a failed server.
func TestGivingUpIsNoAnswer(t *testing.T) {
	c, err := Open([]string{"http://a:1", "http://b:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.active.Store(1)
	failing := c.servers[0]
	c.answered(failing, connect.NewError(connect.CodeUnavailable, syscall.ECONNREFUSED))
	c.answered(failing, connect.NewError(connect.CodeCanceled, context.Canceled))
	if failing.fails.Load() != 1 || c.active.Load() != 1 || c.order()[0] == failing {
		t.Errorf("%d failures, asked first: %v", failing.fails.Load(), c.order()[0].host)
	}
}
