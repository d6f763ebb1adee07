package relay_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/leaf-id/leaf/driver/relay"
)

// A call continues the caller's trace at the server.
func TestTraceGoesOn(t *testing.T) {
	headers := make(chan string, 2)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers <- r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer upstream.Close()
	db, err := relay.Open([]string{upstream.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{15: 1}, SpanID: trace.SpanID{7: 2}, TraceFlags: trace.FlagsSampled})
	if _, err := db.Store().Advance(trace.ContextWithSpanContext(t.Context(), span), "order", 1); err == nil {
		t.Error("a server without the call granted a range")
	}
	if _, err := db.Store().Advance(t.Context(), "order", 1); err == nil {
		t.Error("a server without the call granted a range")
	}
	for _, want := range []string{"00-00000000000000000000000000000001-0000000000000002-01", ""} {
		if got := <-headers; got != want {
			t.Errorf("traceparent is %q, want %q", got, want)
		}
	}
}
