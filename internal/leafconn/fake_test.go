package leafconn

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
)

// A fake is a server that answers as a test says and keeps the requests.
type fake struct {
	*httptest.Server

	mu     sync.Mutex
	answer func(procedure string, body []byte) (proto.Message, error)
	header http.Header // of its answers
	asked  []asked
}

type asked struct {
	procedure string
	header    http.Header
	body      []byte
}

func startFake(t *testing.T, answer func(procedure string, body []byte) (proto.Message, error)) *fake {
	t.Helper()
	f := &fake{answer: answer, header: http.Header{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// says answers each call alike.
func says(m proto.Message, err error) func(string, []byte) (proto.Message, error) {
	return func(string, []byte) (proto.Message, error) { return m, err }
}

// refuses is an error with a reason, as a server tells it.
func refuses(code connect.Code, reason string) error {
	err := connect.NewError(code, io.EOF)
	if d, e := connect.NewErrorDetail(&errdetails.ErrorInfo{Reason: reason}); e == nil {
		err.AddDetail(d)
	}
	return err
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	f.asked = append(f.asked, asked{path.Base(r.URL.Path), r.Header, body})
	answer := f.answer
	maps.Copy(w.Header(), f.header)
	f.mu.Unlock()
	m, err := answer(path.Base(r.URL.Path), body)
	if err != nil {
		_ = connect.NewErrorWriter().Write(w, r, err)
		return
	}
	text, _ := proto.Marshal(m)
	w.Header().Set("Content-Type", "application/proto")
	_, _ = w.Write(text)
}

func (f *fake) set(answer func(procedure string, body []byte) (proto.Message, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer, f.asked = answer, nil
}

func (f *fake) calls() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]asked(nil), f.asked...)
}

func (f *fake) host() string { return strings.TrimPrefix(f.URL, "http://") }

// openTo returns a connection that asks the servers one after the other, in this order.
func openTo(t *testing.T, o Options, servers ...*fake) *Conn {
	t.Helper()
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL)
	}
	if o.Hedge == 0 {
		o.Hedge = -1
	}
	c, err := Open(urls, &o)
	if err != nil {
		t.Fatal(err)
	}
	c.active.Store(0)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
