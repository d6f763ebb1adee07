package rpcapi

import (
	"context"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// TracedCalls are the calls with spans.
var TracedCalls = []string{
	leafv1connect.LeafServiceNextProcedure, leafv1connect.LeafServiceTakeProcedure, leafv1connect.LeafServiceStreamProcedure,
	leafv1connect.LeafServiceAdvanceProcedure, leafv1connect.LeafServiceReturnProcedure,
	leafv1connect.WorkerServiceLoadProcedure, leafv1connect.WorkerServiceSwapProcedure, leafv1connect.WorkerServiceListProcedure,
}

// addToSpan adds the request, and a failure's reason, to the span of a call.
func addToSpan(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		describe(trace.SpanFromContext(ctx), req.Any(), err)
		return res, err
	}
}

// describe adds a request, and the reason of err if not nil, to a span.
func describe(span trace.Span, req any, err error) {
	switch m := req.(type) {
	case interface {
		GetScheme() string
		GetKey() string
	}:
		span.SetAttributes(telemetry.SchemeAttr.String(m.GetScheme()), telemetry.KeyAttr.String(m.GetKey()))
	case interface{ GetTag() string }:
		span.SetAttributes(telemetry.KeyAttr.String(m.GetTag()))
	}
	if err == nil {
		return
	}
	kind := frontend.KindOf(err)
	span.SetAttributes(semconv.ErrorTypeKey.String(kind.Reason))
	if kind.HTTP >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// traced starts the span of a call, in its client's trace, and returns what ends it.
func (s *grpcService) traced(ctx context.Context, procedure string, req any) (_ context.Context, end func(error)) {
	if s.opts.Traces == nil || !slices.Contains(TracedCalls, procedure) {
		return ctx, func(error) {}
	}
	name := procedure[1:]
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(headerOf(ctx)))
	ctx, span := s.opts.Traces.Tracer().Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(semconv.RPCMethod(name)))
	return ctx, func(err error) {
		if req != nil { // else a stream, whose end is no failure
			describe(span, req, err)
		}
		span.End()
	}
}
