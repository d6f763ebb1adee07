package rpcapi

import (
	"cmp"
	"context"
	"net/http"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// rights are the rights for a procedure; one of them suffices. Unlisted procedures need
// [access.Admin]. Those that take IDs also check the tag, once they know it.
var rights = map[string]access.Right{
	leafv1connect.LeafServiceNextProcedure:           access.Take,
	leafv1connect.LeafServiceTakeProcedure:           access.Take,
	leafv1connect.LeafServiceStreamProcedure:         access.Take,
	leafv1connect.LeafServiceAdvanceProcedure:        access.Take,
	leafv1connect.LeafServiceReturnProcedure:         access.Take,
	leafv1connect.LeafServiceDecodeProcedure:         access.Take | access.Read,
	leafv1connect.AdminServiceListTagsProcedure:      access.Read,
	leafv1connect.AdminServicePeekTagProcedure:       access.Read,
	leafv1connect.AdminServiceListWorkersProcedure:   access.Read,
	leafv1connect.AdminServiceStatusProcedure:        access.Read,
	leafv1connect.WorkerServiceLoadProcedure:         access.Worker,
	leafv1connect.WorkerServiceSwapProcedure:         access.Worker,
	leafv1connect.WorkerServiceListProcedure:         access.Worker,
	leafv1connect.WorkerServiceClockProcedure:        access.Worker,
	leafv1connect.WorkerServiceClaimLeaseProcedure:   access.Lease,
	leafv1connect.WorkerServiceRenewLeaseProcedure:   access.Lease,
	leafv1connect.WorkerServiceReleaseLeaseProcedure: access.Lease,
	leafv1connect.AdminServiceListPoolsProcedure:     access.Read,
}

// An authorizer admits callers with the right to call a procedure.
type authorizer struct {
	next     http.Handler
	opts     *frontend.Options
	requests *telemetry.Requests // counts the refused ones
	errors   *connect.ErrorWriter
}

func newAuthorizer(opts *frontend.Options, requests *telemetry.Requests, next http.Handler) *authorizer {
	return &authorizer{next, opts, requests, connect.NewErrorWriter()}
}

func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, err := admit(a.opts, r)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.next.ServeHTTP(w, r.WithContext(ctx))
}

// admit returns the context of a call that its sender may make.
func admit(opts *frontend.Options, r *http.Request) (context.Context, error) {
	ctx, needs := r.Context(), needs(r.URL.Path)
	caller, err := opts.Admit(r, needs)
	if err != nil {
		return nil, err
	}
	ctx = frontend.WithCaller(ctx, caller)
	if needs == access.Admin {
		ctx = issuer.WithActor(ctx, issuer.Actor{Name: caller.Name(), From: r.RemoteAddr})
	}
	return ctx, nil
}

// needs returns the rights of which a caller of the procedure needs one.
func needs(procedure string) access.Right { return cmp.Or(rights[procedure], access.Admin) }

func (a *authorizer) refuse(w http.ResponseWriter, r *http.Request, err error) {
	recorder := a.requests.RecorderOf(r.RemoteAddr)
	recorder.Done(recorder.Now(), 1)
	a.requests.Failed(frontend.KindOf(err).Reason)
	frontend.SetAdvice(w.Header(), err)
	_ = a.errors.Write(w, r, newError(err, frontend.Text(err))) // a vanished client needs no answer
}
