// Package rpcapi is the front end for gRPC, gRPC-Web and Connect: the services of
// package leafv1 on net/http.
package rpcapi

import (
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

const (
	frontEnd = "grpc" // in the metrics

	maxRequest  = 64 << 10 // bytes; the longest sensible request is far shorter
	minCompress = 1 << 10  // bytes; compressing a lone ID costs more than sending it
)

// Register adds the services to mux: those of package leafv1, gRPC's health checks, and
// its reflection.
func Register(mux *http.ServeMux, opts *frontend.Options) {
	counted := opts.Requests.Of(frontEnd)
	options := func(t errorText, requests *telemetry.Requests) []connect.HandlerOption {
		interceptors := []connect.Interceptor{connect.UnaryInterceptorFunc(t.withCodes), record(requests)}
		if opts.Traces != nil {
			interceptors = append(interceptors, connect.UnaryInterceptorFunc(addToSpan))
		}
		return []connect.HandlerOption{
			connect.WithCompressMinBytes(minCompress),
			connect.WithReadMaxBytes(maxRequest),
			connect.WithInterceptors(interceptors...),
		}
	}
	admin := newAdmin(opts)
	path, handler := leafv1connect.NewLeafServiceHandler(&leafService{Options: opts, requests: counted}, options(frontend.Text, counted)...)
	mux.Handle(path, newAuthorizer(opts, counted, withRoute(opts, withJSON(frontend.WithCharge(opts.Conns.Budget, handler)))))
	mux.Handle(leafv1connect.LeafServiceStreamProcedure, newAuthorizer(opts, counted, withDeadlines(frontend.WithCharge(opts.Conns.Budget, handler))))
	path, handler = leafv1connect.NewAdminServiceHandler(admin, options(admin.tell, nil)...)
	mux.Handle(path, newAuthorizer(opts, nil, withVia(handler)))
	path, handler = leafv1connect.NewWorkerServiceHandler(&workerService{opts}, options(admin.tell, nil)...)
	mux.Handle(path, newAuthorizer(opts, nil, withVia(handler)))
	registerHealth(mux, opts)
	registerReflection(mux)
}

// withJSON accepts curl's body as JSON: by default curl calls it a form. A page can send forms from
// anywhere, so this is for IDs alone, see package browser.
func withJSON(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == "application/x-www-form-urlencoded" {
			r.Header.Set("Content-Type", "application/json")
		}
		next.ServeHTTP(w, r)
	})
}

// record counts the calls. It sees errors as the service returns them.
func record(requests *telemetry.Requests) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			recorder := requests.RecorderOf(req.Peer().Addr)
			arrived := recorder.Now()
			res, err := next(ctx, req)
			recorder.Done(arrived, 1)
			if err != nil {
				requests.Failed(frontend.KindOf(err).Reason)
			}
			return res, err
		}
	}
}

// An errorText returns the text of an error for callers.
type errorText func(error) string

// withCodes gives errors the codes of the protocols.
func (t errorText) withCodes(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		if err == nil {
			return res, nil
		}
		coded := newError(err, t(err))
		frontend.SetAdvice(coded.Meta(), err)
		return nil, coded
	}
}
