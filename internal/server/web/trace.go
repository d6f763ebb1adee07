package web

import (
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// A tracer makes a span of each request for IDs that next serves, as a part of the trace that
// the caller names, if it does.
type tracer struct {
	traces *telemetry.Traces
	next   http.Handler
}

// ServeHTTP implements [http.Handler].
func (t *tracer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, about := describe(r)
	if name == "" {
		t.next.ServeHTTP(w, r)
		return
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.traces.Tracer().Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(about...))
	defer span.End()
	rec := &recorder{ResponseWriter: w}
	t.next.ServeHTTP(rec, r.WithContext(ctx))
	span.SetAttributes(semconv.HTTPResponseStatusCode(rec.code()))
	if rec.code() >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// A tracedRoute is a route with spans. Below /v1 the part before the key has the scheme too.
type tracedRoute struct{ prefix, route, scheme string }

var tracedRoutes = func() []tracedRoute {
	routes := []tracedRoute{{"/v1/ids/", "/v1/ids/{scheme}/{key}", ""}}
	for _, s := range issuer.Schemes {
		routes = append(routes, tracedRoute{s.Path, s.Path + "{key}", s.Name})
	}
	return routes
}()

// knownMethods are those that the name of a span may have; a client can send any word.
var knownMethods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// describe returns the name of a request's span, or "" for no span, and the span's attributes.
func describe(r *http.Request) (name string, about []attribute.KeyValue) {
	path := r.URL.Path
	if slices.Contains(rpcapi.TracedCalls, path) {
		return path[1:], []attribute.KeyValue{semconv.RPCMethod(path[1:])}
	}
	for _, t := range tracedRoutes {
		rest, ok := strings.CutPrefix(path, t.prefix)
		if !ok {
			continue
		}
		scheme, key := t.scheme, rest
		if scheme == "" {
			scheme, key, _ = strings.Cut(rest, "/")
		}
		method := semconv.HTTPRequestMethodKey.String(r.Method)
		name = r.Method + " " + t.route
		if !slices.Contains(knownMethods, r.Method) {
			method, name = semconv.HTTPRequestMethodOther, "HTTP "+t.route
		}
		return name, []attribute.KeyValue{method, semconv.HTTPRoute(t.route),
			telemetry.SchemeAttr.String(scheme), telemetry.KeyAttr.String(strings.TrimSuffix(key, "/"))}
	}
	return "", nil
}
