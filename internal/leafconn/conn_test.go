package leafconn

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/segment"
)

// A URL names a server and nothing else.
func TestOpenRefuses(t *testing.T) {
	for _, urls := range [][]string{
		nil, {"http://"}, {"h:1"}, {"ftp://h"}, {"http://h/x"}, {"http://h?x=1"}, {"http://user@h"}, {"http://%zz"}, {"http://h", "h:1"},
	} {
		if c, err := Open(urls, nil); !errors.Is(err, leaf.ErrInvalid) || c != nil {
			t.Errorf("%v: %v", urls, err)
		}
	}
	for _, url := range []string{"http://h:1", "https://h", "http://h/"} {
		if _, err := Open([]string{url}, nil); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// Programs begin with any of the servers.
func TestOpenBeginsAnywhere(t *testing.T) {
	seen := map[int64]bool{}
	for range 200 {
		seen[openThree(t).active.Load()] = true
	}
	if len(seen) != 3 {
		t.Errorf("200 programs begin with %v", seen)
	}
}

// No dial, handshake or ping takes for ever, and a proxy of the environment is used.
func TestTransport(t *testing.T) {
	c := openThree(t)
	if tr := c.transport(); tr.Proxy == nil || !tr.ForceAttemptHTTP2 || tr.DialContext == nil || tr.HTTP2.PingTimeout != dialTimeout || tr.HTTP2.SendPingTimeout != dialTimeout {
		t.Errorf("got %+v", tr)
	}
}

// Each call has the token, the names of the servers before it, and the caller's trace.
func TestHeaders(t *testing.T) {
	f := startFake(t, says(&leafv1.AdvanceResponse{}, nil))
	id := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	ctx := hops.With(trace.ContextWithSpanContext(t.Context(), id), []string{"a", "b"})
	c := openTo(t, Options{Token: FixedToken(" secret\n"), Name: "me"}, f)
	if _, err := (Store{c}).Advance(ctx, "order", 1); err != nil {
		t.Fatal(err)
	}
	h := f.calls()[0].header
	if h.Get("Authorization") != "Bearer secret" || h.Get(hops.Via) != "a,b,me" || !strings.Contains(h.Get("Traceparent"), id.TraceID().String()) {
		t.Errorf("got %v", h)
	}
	f.set(says(&leafv1.AdvanceResponse{}, nil))
	if _, err := (Store{openTo(t, Options{}, f)}).Advance(ctx, "order", 1); err != nil {
		t.Fatal(err)
	}
	if h := f.calls()[0].header; h.Get("Authorization") != "" || h.Get(hops.Via) != "" {
		t.Errorf("without a token and a name: %v", h)
	}
	f.set(nil)
	failing := errors.New("no token")
	if _, err := (Store{openTo(t, Options{Token: func() (string, error) { return "", failing }}, f)}).Advance(ctx, "order", 1); !errors.Is(err, failing) || len(f.calls()) > 0 {
		t.Errorf("without the token: %v, %d calls", err, len(f.calls()))
	}
	if _, err := (Store{openTo(t, Options{Name: "b"}, f)}).Advance(ctx, "order", 1); !errors.Is(err, hops.ErrLoop) || len(f.calls()) > 0 {
		t.Errorf("in a circle: %v, %d calls", err, len(f.calls()))
	}
}

// An observer learns of each call how it ended.
func TestObserver(t *testing.T) {
	f := startFake(t, func(string, []byte) (proto.Message, error) {
		time.Sleep(time.Millisecond)
		return &leafv1.AdvanceResponse{Range: &leafv1.Range{Start: 5, End: 9}}, nil
	})
	var calls []Call
	c := openTo(t, Options{Observe: func(c Call) { calls = append(calls, c) }}, f)
	_, _ = Store{c}.Advance(t.Context(), "order", 4)
	f.set(says(nil, refuses(connect.CodeNotFound, "UNKNOWN_TAG")))
	_, _ = Store{c}.Advance(t.Context(), "order", 4)
	if len(calls) != 2 {
		t.Fatalf("got %+v", calls)
	}
	if a := calls[0]; a.Server != f.host() || a.Procedure != "Advance" || a.Took < time.Millisecond || a.Err != nil || a.Range != (leaf.Range{Start: 5, End: 9}) {
		t.Errorf("got %+v", a)
	}
	if a := calls[1]; a.Server != f.host() || a.Procedure != "Advance" || connect.CodeOf(a.Err) != connect.CodeNotFound || !a.Range.Empty() {
		t.Errorf("got %+v", a)
	}
}

// A call to a server ends after CallTimeout, if set.
func TestCallTimeout(t *testing.T) {
	hang := make(chan struct{})
	f := startFake(t, func(string, []byte) (proto.Message, error) { <-hang; return &leafv1.AdvanceResponse{}, nil })
	defer close(hang)
	if _, err := (Store{openTo(t, Options{CallTimeout: time.Millisecond}, f)}).Advance(t.Context(), "order", 1); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := (Store{openTo(t, Options{}, f)}).Advance(ctx, "order", 1); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}

// A server learns which servers its IDs come through, also from a refusal, and takes none that come
// through itself.
func TestRoute(t *testing.T) {
	f := startFake(t, says(&leafv1.AdvanceResponse{}, nil))
	f.header.Set(hops.Route, "x,y")
	c := openTo(t, Options{Name: "me"}, f)
	if got := strings.Join(c.Route(), ","); got != "me" {
		t.Errorf("before a call: %q", got)
	}
	for name, answer := range map[string]error{"an answer": nil, "a refusal": refuses(connect.CodeNotFound, "UNKNOWN_TAG")} {
		f.set(says(&leafv1.AdvanceResponse{}, answer))
		c.servers[0].route.Store(nil)
		if _, err := (Store{c}).Advance(t.Context(), "order", 1); (err == nil) != (answer == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(c.Route(), ","); got != "me,x,y" {
			t.Errorf("%s: %q", name, got)
		}
	}
	f.header.Del(hops.Route) // as from the other services, which tell no route
	f.set(says(&leafv1.ListTagsResponse{}, nil))
	for range (Store{c}).Tags(t.Context()) {
		t.Error("a tag")
	}
	if _, err := (Registry{c}).List(t.Context()); err != nil || strings.Join(c.Route(), ",") != "me,x,y" {
		t.Errorf("after calls of other services: %v, %v", c.Route(), err)
	}
	f.header.Set(hops.Route, "x,me")
	for name, answer := range map[string]error{"an answer": nil, "a refusal": refuses(connect.CodeNotFound, "UNKNOWN_TAG")} {
		f.set(says(&leafv1.AdvanceResponse{}, answer))
		if _, err := (Store{c}).Advance(t.Context(), "order", 1); !errors.Is(err, hops.ErrLoop) {
			t.Errorf("in a circle, %s: %v", name, err)
		}
	}
	f.set(says(&leafv1.AdvanceResponse{}, nil))
	if _, err := (Store{openTo(t, Options{}, f)}).Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("a client without a name: %v", err)
	}
	f.Close()
	if _, err := (Store{c}).Advance(t.Context(), "order", 1); err == nil || strings.Join(c.Route(), ",") != "me,x,me" {
		t.Errorf("without an answer: %v, %v", err, c.Route())
	}
}

// The first store that answers, or the expected one, is the only one whose answers count.
func TestForeignStore(t *testing.T) {
	stores := map[*fake]string{}
	var servers []*fake
	for _, id := range []string{"mine", "other"} {
		f := startFake(t, says(&leafv1.AdvanceResponse{Store: id}, nil))
		stores[f] = id
		servers = append(servers, f)
	}
	for name, tt := range map[string]struct {
		expect, before string
		want           error
	}{
		"expected": {"mine", "", nil}, "of another one": {"third", "", segment.ErrForeignStore}, "the first": {"", "", nil}, "the other": {"other", "", nil},
	} {
		c := openTo(t, Options{}, servers...)
		if tt.expect != "" {
			c.Expect(tt.expect)
		}
		g, err := Store{c}.Advance(t.Context(), "order", 1)
		if !errors.Is(err, tt.want) || err == nil && tt.expect != "" && g.Store != tt.expect {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
	c := openTo(t, Options{}, servers[0])
	take := func(id string) error {
		servers[0].set(says(&leafv1.TakeResponse{Store: id, Ranges: []*leafv1.Range{{Start: 1, End: 2}}}, nil))
		_, err := c.Take(t.Context(), "", "order", 1)
		return err
	}
	for _, step := range []struct {
		id   string
		want error
	}{{"", nil}, {"one", nil}, {"", nil}, {"two", segment.ErrForeignStore}, {"one", nil}} {
		if err := take(step.id); !errors.Is(err, step.want) {
			t.Errorf("%+v: %v", step, err)
		}
	}
	servers[0].set(says(&leafv1.TakeResponse{Store: "two", Texts: []string{"x"}}, nil))
	if _, err := c.Take(t.Context(), "uuid", "", 1); !errors.Is(err, segment.ErrForeignStore) || errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("texts of another store: %v", err)
	}
}

// A server that may not tell its identity, or lacks one, has an empty one; a silent one is an error.
func TestIdentities(t *testing.T) {
	f := startFake(t, says(&leafv1.StatusResponse{}, nil))
	c := openTo(t, Options{}, f)
	for name, tt := range map[string]struct {
		err    error
		failed bool
	}{"none": {nil, false}, "denied": {refuses(connect.CodePermissionDenied, "FORBIDDEN"), false}, "away": {refuses(connect.CodeUnavailable, ""), true}} {
		f.set(says(&leafv1.StatusResponse{}, tt.err))
		if got, err := c.Identities(t.Context()); got != nil || (err != nil) != tt.failed {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A failed server comes last for a time that doubles from 100 ms to 5 s, less up to half of it. An
// answer ends that and makes it the first.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		c.active.Store(0)
		away := connect.NewError(connect.CodeUnavailable, errors.New("x"))
		s := c.servers[0]
		for i := range 12 {
			c.answered(s, away)
			most := min(maxBackoff, firstBackoff<<i)
			if pause := time.Until(time.Unix(0, s.retryAt.Load())); pause < most/2 || pause >= most {
				t.Errorf("after failure %d: a pause of %v, want %v at most", i+1, pause, most)
			}
			if order := hosts(c); order != "b:1 c:1 a:1" {
				t.Errorf("after failure %d: %s", i+1, order)
			}
		}
		c.answered(c.servers[2], nil)
		if order := hosts(c); order != "c:1 b:1 a:1" {
			t.Errorf("another one has answered: %s", order)
		}
		if time.Sleep(maxBackoff); hosts(c) != "c:1 a:1 b:1" {
			t.Errorf("after the pause: %s", hosts(c))
		}
		c.answered(s, away)
		c.answered(s, nil)
		if hosts(c) != "a:1 b:1 c:1" || s.fails.Load() != 0 {
			t.Errorf("after an answer: %s, %d failures", hosts(c), s.fails.Load())
		}
		c.answered(s, away)
		if pause := time.Until(time.Unix(0, s.retryAt.Load())); pause >= firstBackoff {
			t.Errorf("the first failure after an answer: a pause of %v", pause)
		}
	})
}

func hosts(c *Conn) string {
	var all []string
	for _, s := range c.order() {
		all = append(all, s.host)
	}
	return strings.Join(all, " ")
}

// A call goes to a second server only if one exists and the caller wants that.
func TestWhenToHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			urls  []string
			hedge time.Duration
			want  time.Duration // 0: never
		}{
			"the default": {[]string{"http://a", "http://b"}, 0, defaultHedge}, "given": {[]string{"http://a", "http://b"}, time.Second, time.Second},
			"never": {[]string{"http://a", "http://b"}, -1, 0}, "one server": {[]string{"http://a"}, 0, 0},
		} {
			c, err := Open(tt.urls, &Options{Hedge: tt.hedge})
			if err != nil {
				t.Fatal(err)
			}
			begin, timer := time.Now(), c.hedge()
			if (timer != nil) != (tt.want > 0) {
				t.Errorf("%s: a timer: %v", name, timer != nil)
			} else if timer != nil {
				if <-timer; time.Since(begin) != tt.want {
					t.Errorf("%s: after %v", name, time.Since(begin))
				}
			}
		}
	})
}

// The path of a URL may be a slash.
func TestSlashBehindTheHost(t *testing.T) {
	f := startFake(t, says(&leafv1.AdvanceResponse{}, nil))
	c, err := Open([]string{f.URL + "/"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := (Store{c}).Advance(t.Context(), "order", 1); err != nil || f.calls()[0].procedure != "Advance" {
		t.Errorf("got %v", err)
	}
}

// If all servers fail, the error has each one's; one that is still asked may answer.
func TestAllServersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		away := connect.NewError(connect.CodeUnavailable, errors.New("x"))
		_, err := inTurn(t.Context(), c, never, func(context.Context, *server) (numbered, error) { return numbered{}, away })
		for _, s := range c.servers {
			if err == nil || !strings.Contains(err.Error(), s.host) || !errors.Is(err, errAway) || s.fails.Load() != 1 {
				t.Errorf("server %s with %d failures: %v", s.host, s.fails.Load(), err)
			}
		}
		if n := strings.Count(err.Error(), "; "); n != 2 {
			t.Errorf("%d semicolons in %v", n, err)
		}
		slow := c.order()[0]
		_, err = inTurn(t.Context(), c, c.hedge, func(_ context.Context, s *server) (numbered, error) {
			if s != slow {
				return numbered{}, away
			}
			time.Sleep(time.Second)
			return numbered{}, nil
		})
		if err != nil {
			t.Errorf("the first one answers late: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		_, err = inTurn(ctx, c, never, func(context.Context, *server) (numbered, error) { calls++; cancel(); return numbered{}, away })
		if !errors.Is(err, context.Canceled) || calls != 1 {
			t.Errorf("after the end of the caller: %v, %d calls", err, calls)
		}
	})
}

// No call repeats that the caller's end has cut, and a cut one does.
func TestCutCallsRepeat(t *testing.T) {
	c := openThree(t)
	calls := 0
	_, err := inTurn(t.Context(), c, never, func(context.Context, *server) (numbered, error) {
		if calls++; calls < 4 {
			return numbered{}, errCut
		}
		return numbered{}, nil
	})
	if err != nil || calls != 4 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

// An answer with an error has that of the server, of the network, or of the caller.
func TestExplain(t *testing.T) {
	s := &server{host: "h"}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	base := errors.New("base")
	for name, tt := range map[string]struct {
		ctx  context.Context
		err  error
		want error
		text string
	}{
		"none":         {t.Context(), nil, nil, ""},
		"the caller":   {ended, base, context.Canceled, "leaf server h: context canceled"},
		"not a code":   {t.Context(), base, base, "leaf server h: base"},
		"the network":  {t.Context(), connect.NewError(connect.CodeUnavailable, base), errAway, "leaf server h is unavailable: base"},
		"no words":     {t.Context(), connect.NewError(connect.CodeUnavailable, nil), errAway, "leaf server h is unavailable: unavailable"},
		"an unknown":   {t.Context(), connect.NewWireError(connect.CodeNotFound, base), nil, "leaf server h: base"},
		"with details": {t.Context(), wire(t, refuses(connect.CodeNotFound, "TAG_EXISTS")), leaf.ErrTagExists, "leaf server h: EOF"},
	} {
		err := explain(tt.ctx, s, tt.err)
		if (err == nil) != (tt.err == nil) || tt.want != nil && !errors.Is(err, tt.want) || err != nil && err.Error() != tt.text {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{nil, base} {
		if got := noIDs(err); got != err {
			t.Errorf("%v becomes %v", err, got)
		}
	}
	if err := noIDs(errAway); !errors.Is(err, leaf.ErrExhausted) || !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}

// wire returns an error as a client gets it.
func wire(t *testing.T, err error) error {
	t.Helper()
	var got error
	f := startFake(t, says(nil, err))
	c := openTo(t, Options{Observe: func(c Call) { got = c.Err }}, f)
	_, _ = c.Peek(t.Context(), "a")
	return got
}

// A token file is read again after a second, and a missing or empty one fails each time.
func TestTokenFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		token := TokenFile(name)
		want := func(text string, ok bool) {
			t.Helper()
			if got, err := token(); got != text || (err == nil) != ok {
				t.Errorf("got %q, %v", got, err)
			}
		}
		want("", false)
		write("one\n")
		want("one", true)
		write("two\n")
		time.Sleep(tokenAge - time.Millisecond)
		want("one", true)
		time.Sleep(time.Millisecond)
		want("two", true)
		time.Sleep(tokenAge)
		write(" \n")
		want("", false)
		want("", false)
		write("three")
		want("three", true)
		time.Sleep(tokenAge)
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		want("", false)
	})
}

// An HTTP/1 answer has an end of its own; an HTTP/2 one always does.
func TestWhole(t *testing.T) {
	if got, err := FixedToken("a b\n")(); got != "a b" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	f := startFake(t, says(&leafv1.AdvanceResponse{Step: 3}, nil))
	res, err := whole{http.DefaultTransport.(*http.Transport).Clone()}.RoundTrip(mustRequest(t, f.URL))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}

func mustRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/x", strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	return req
}
