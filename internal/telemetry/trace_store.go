package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/leaf-id/leaf/segment"
)

// What spans say of requests and of calls of a store.
const (
	SchemeAttr  = attribute.Key("leaf.scheme")
	KeyAttr     = attribute.Key("leaf.key")
	tagAttr     = attribute.Key("leaf.tag")
	storeAttr   = attribute.Key("leaf.store")
	askedAttr   = attribute.Key("leaf.asked")
	grantedAttr = attribute.Key("leaf.granted")
)

// SpanContext returns a context with the caller's span and nothing else: work after the request
// stays in its trace.
func SpanContext(caller context.Context) context.Context {
	return trace.ContextWithSpanContext(context.Background(), trace.SpanContextFromContext(caller))
}

// StoreCall returns the observer of the calls to a store. It makes a span of each if traces is not
// nil, and counts allocations. kind is the kind of the store, such as postgres, without
// credentials.
func StoreCall(t *Traces, counts *Requests, kind string) func(context.Context, segment.Call) (context.Context, func(int64, error)) {
	return func(ctx context.Context, c segment.Call) (context.Context, func(int64, error)) {
		ctx, traced := t.storeCall(ctx, c, kind)
		begun := time.Now()
		return ctx, func(granted int64, err error) {
			traced(granted, err)
			if c.Return {
				return
			}
			counts.Recorder(0).took(time.Since(begun), 1)
			if err != nil {
				counts.Failed(storeCause(err))
			}
		}
	}
}

// storeCall makes the span of a call to a store. It tells the kind of an error, as its text may
// name what only the log may.
func (t *Traces) storeCall(ctx context.Context, c segment.Call, kind string) (context.Context, func(int64, error)) {
	if t == nil {
		return ctx, func(int64, error) {}
	}
	name, about := "store advance", []attribute.KeyValue{tagAttr.String(c.Tag), storeAttr.String(kind)}
	if c.Return {
		name = "store return"
	} else {
		about = append(about, askedAttr.Int64(c.Asked))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(about...))
	return ctx, func(granted int64, err error) {
		if !c.Return {
			span.SetAttributes(grantedAttr.Int64(granted))
		}
		if err != nil {
			span.SetAttributes(semconv.ErrorTypeKey.String(storeCause(err)))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}
