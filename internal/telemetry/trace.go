package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

const (
	tracesOff    = "off"        // as an endpoint
	tracesPath   = "/v1/traces" // of a URL that has none
	flushTimeout = 5 * time.Second
	exportLog    = time.Minute // between two lines about lost spans
	maxValue     = 256         // characters of an attribute or an error
)

// Traces makes spans and sends them to a collector. Its methods are safe for concurrent use. A nil
// Traces makes no spans.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// OpenTraces returns Traces that send spans to a collector over OTLP; nil if neither endpoint, a
// URL or off, nor the environment variables of OpenTelemetry enable tracing. The variables decide
// the rest, such as the sampler. An error reports settings that cannot work. OpenTraces does not
// contact the collector.
func OpenTraces(endpoint, version string, log *slog.Logger) (*Traces, error) {
	on, err := tracesWanted(endpoint, os.Getenv)
	if err != nil || !on {
		return nil, err
	}
	var opts []otlptracehttp.Option
	if endpoint != "" {
		opts = append(opts, otlptracehttp.WithEndpointURL(withTracesPath(endpoint)))
	}
	exporter, err := otlptracehttp.New(context.Background(), opts...)
	if err != nil {
		return nil, fmt.Errorf("open the exporter of traces: %w", err)
	}
	about, err := resource.New(context.Background(), resource.WithAttributes(semconv.ServiceName("leaf"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv()) // the last one counts
	if err != nil {
		log.Warn("traces may say less than they should about this process", "err", err)
	}
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 { // keys come from clients
		limits.AttributeValueLengthLimit = maxValue
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithBatcher(&lenient{SpanExporter: exporter, log: log, lines: rate.Sometimes{Interval: exportLog}}))
	return &Traces{provider, provider.Tracer("github.com/leaf-id/leaf", trace.WithInstrumentationVersion(version))}, nil
}

// Tracer makes the spans.
func (t *Traces) Tracer() trace.Tracer { return t.tracer }

// tracesWanted reports whether spans should be sent anywhere.
func tracesWanted(endpoint string, getenv func(string) string) (bool, error) {
	env := func(name string) string { return strings.TrimSpace(getenv("OTEL_" + name)) }
	variable := cmp.Or(env("EXPORTER_OTLP_TRACES_ENDPOINT"), env("EXPORTER_OTLP_ENDPOINT"))
	exporter := strings.ToLower(cmp.Or(env("TRACES_EXPORTER"), "otlp"))
	protocol := cmp.Or(env("EXPORTER_OTLP_TRACES_PROTOCOL"), env("EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	switch {
	case endpoint == tracesOff, endpoint == "" && variable == "", strings.EqualFold(env("SDK_DISABLED"), "true"), exporter == "none":
		return false, nil
	case exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q: leaf has otlp and none", exporter)
	case endpoint != "":
		return true, nil
	case protocol != "http/protobuf":
		return false, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q: leaf speaks http/protobuf; "+
			"set it to that, and the endpoint to the collector's port for it", protocol)
	}
	if u, err := url.Parse(variable); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false, errors.New("OTEL_EXPORTER_OTLP_ENDPOINT is not http://host:port or https://host:port")
	}
	return true, nil
}

// withTracesPath adds the path that collectors have to a URL without one.
func withTracesPath(endpoint string) string {
	if u, err := url.Parse(endpoint); err == nil && strings.Trim(u.Path, "/") == "" {
		return strings.TrimRight(endpoint, "/") + tracesPath
	}
	return endpoint
}

// Close sends the finished spans, for a short time at most.
func (t *Traces) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("end the traces: %w", err)
	}
	return nil // the collector is away: that must not make a stop fail
}

// A lenient exporter logs, once in a while, that spans are lost. To the rest of the process that
// makes no difference.
type lenient struct {
	sdktrace.SpanExporter
	log   *slog.Logger
	lines rate.Sometimes
}

// ExportSpans implements [sdktrace.SpanExporter].
func (l *lenient) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := l.SpanExporter.ExportSpans(ctx, spans); err != nil {
		l.lines.Do(func() {
			text := err.Error() // it may hold all that the collector has answered
			l.log.Warn("spans are lost, because the collector of traces does not take them; this is logged once a minute at most",
				"spans", len(spans), "err", text[:min(len(text), maxValue)])
		})
	}
	return nil
}

// LogTracesTo has the library for traces, which otherwise writes to standard error, write to log.
// It is of the process, not of a server.
func LogTracesTo(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are not as they should be", "err", err) }))
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
}
