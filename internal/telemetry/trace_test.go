package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// TestTracesWanted shows when spans are sent.
func TestTracesWanted(t *testing.T) {
	const base, of, protocol = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL"
	tests := []struct {
		endpoint string
		env      map[string]string
		want, ok bool
	}{
		{"", nil, false, true},
		{"http://c", nil, true, true},
		{"off", map[string]string{base: "http://c"}, false, true},
		{"", map[string]string{base: "http://c"}, true, true},
		{"", map[string]string{of: "https://c:4318/x"}, true, true},
		{"", map[string]string{base: "c:4318"}, false, false},
		{"", map[string]string{base: "http://c", protocol: "http/protobuf"}, true, true},
		{"", map[string]string{base: "http://c", protocol: "grpc"}, false, false},
		{"", map[string]string{protocol: "grpc"}, false, true},
		{"http://c", map[string]string{protocol: "grpc"}, true, true},
		{"http://c", map[string]string{"OTEL_SDK_DISABLED": "true"}, false, true},
		{"http://c", map[string]string{"OTEL_TRACES_EXPORTER": "none"}, false, true},
		{"http://c", map[string]string{"OTEL_TRACES_EXPORTER": "console"}, false, false},
	}
	for _, tt := range tests {
		got, err := tracesWanted(tt.endpoint, func(name string) string { return tt.env[name] })
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%q, %v: %v, %v", tt.endpoint, tt.env, got, err)
		}
	}
}

func TestTracesPath(t *testing.T) {
	for endpoint, want := range map[string]string{"http://c:4318": "http://c:4318/v1/traces", "http://c/": "http://c/v1/traces", "http://c/x": "http://c/x"} {
		if got := withTracesPath(endpoint); got != want {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}

func openTraces(t *testing.T) *Traces {
	t.Helper()
	traces, err := OpenTraces("http://127.0.0.1:1", "v1", slog.New(slog.DiscardHandler))
	if err != nil || traces == nil {
		t.Fatal(traces, err)
	}
	t.Cleanup(func() { _ = traces.Close() }) // nothing to flush
	return traces
}

// A call of the store outlives the request that caused it.
func TestSpanContextOutlivesTheCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ctx, span := openTraces(t).Tracer().Start(ctx, "request")
	got := SpanContext(ctx)
	cancel()
	if trace.SpanContextFromContext(got).SpanID() != span.SpanContext().SpanID() || got.Err() != nil {
		t.Errorf("%v, %v", trace.SpanContextFromContext(got), got.Err())
	}
	span.End()
	if errors.Is(context.Cause(got), context.Canceled) {
		t.Error("it has ended with the caller")
	}
}
