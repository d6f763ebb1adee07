package rpcapi

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// addToSpan adds the request, and a failure's reason, to the span of a call.
func addToSpan(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		span := trace.SpanFromContext(ctx)
		switch m := req.Any().(type) {
		case interface {
			GetScheme() string
			GetKey() string
		}:
			span.SetAttributes(telemetry.SchemeAttr.String(m.GetScheme()), telemetry.KeyAttr.String(m.GetKey()))
		case interface{ GetTag() string }:
			span.SetAttributes(telemetry.KeyAttr.String(m.GetTag()))
		}
		res, err := next(ctx, req)
		if err != nil {
			kind := frontend.KindOf(err)
			span.SetAttributes(semconv.ErrorTypeKey.String(kind.Reason))
			if kind.HTTP >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, "")
			}
		}
		return res, err
	}
}
