package rpcapi

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	_ "google.golang.org/grpc/health/grpc_health_v1" // reflection finds the definition of Health there

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// healthChecker answers gRPC's health checks as /readyz answers others: for the server (no
// service), for its services, and for a scheme by its name.
type healthChecker struct{ *frontend.Options }

func registerHealth(mux *http.ServeMux, opts *frontend.Options) {
	mux.Handle(grpchealth.NewHandler(healthChecker{opts}, connect.WithReadMaxBytes(maxRequest)))
}

// Check implements [grpchealth.Checker].
func (h healthChecker) Check(_ context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	scheme := ""
	switch req.Service {
	case "", leafv1connect.LeafServiceName:
	case leafv1connect.AdminServiceName, leafv1connect.WorkerServiceName, grpchealth.HealthV1ServiceName:
		return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
	default:
		if h.IDs.Check(req.Service, "any") != nil {
			return nil, connect.NewError(connect.CodeNotFound, errors.New("no such service, and no scheme of that name is enabled"))
		}
		scheme = req.Service
	}
	if h.Report().Err(scheme) != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
