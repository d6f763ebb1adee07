package rpcapi

import (
	"context"
	"errors"
	"strings"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// register adds the services to s.
func (g *GRPC) register(s *grpc.Server) {
	for _, service := range []*grpc.ServiceDesc{g.leafService(), g.adminService(), g.workerService()} {
		service.HandlerType = (*any)(nil)
		s.RegisterService(service, nil)
	}
	grpc_health_v1.RegisterHealthServer(s, grpcHealth{checker: healthChecker{g.opts}})
	reflection.Register(s)
}

func (g *GRPC) leafService() *grpc.ServiceDesc {
	s := &grpcService{GRPC: g, requests: g.requests, tell: frontend.Text, route: g.opts.Route}
	ids := &leafService{Options: g.opts, requests: g.requests, stop: g.opts.Context}
	return &grpc.ServiceDesc{
		ServiceName: leafv1connect.LeafServiceName,
		Metadata:    leafv1.File_leaf_v1_leaf_proto.Path(),
		Methods: []grpc.MethodDesc{
			unary(s, leafv1connect.LeafServiceNextProcedure, ids.Next),
			unary(s, leafv1connect.LeafServiceTakeProcedure, ids.Take),
			unary(s, leafv1connect.LeafServiceDecodeProcedure, ids.Decode),
			unary(s, leafv1connect.LeafServiceAdvanceProcedure, ids.Advance),
			unary(s, leafv1connect.LeafServiceReturnProcedure, ids.Return),
		},
		Streams: []grpc.StreamDesc{{
			StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, stream grpc.ServerStream) error { return s.stream(ids, stream) },
		}},
	}
}

func (g *GRPC) adminService() *grpc.ServiceDesc {
	admin := newAdmin(g.opts)
	s := &grpcService{GRPC: g, tell: admin.tell}
	return &grpc.ServiceDesc{
		ServiceName: leafv1connect.AdminServiceName,
		Metadata:    leafv1.File_leaf_v1_admin_proto.Path(),
		Methods: []grpc.MethodDesc{
			unary(s, leafv1connect.AdminServiceListTagsProcedure, admin.ListTags),
			unary(s, leafv1connect.AdminServiceCreateTagProcedure, admin.CreateTag),
			unary(s, leafv1connect.AdminServiceAlterTagProcedure, admin.AlterTag),
			unary(s, leafv1connect.AdminServiceDeleteTagProcedure, admin.DeleteTag),
			unary(s, leafv1connect.AdminServiceListPeriodsProcedure, admin.ListPeriods),
			unary(s, leafv1connect.AdminServiceRemovePeriodProcedure, admin.RemovePeriod),
			unary(s, leafv1connect.AdminServicePeekTagProcedure, admin.PeekTag),
			unary(s, leafv1connect.AdminServiceObserveTagProcedure, admin.ObserveTag),
			unary(s, leafv1connect.AdminServiceListWorkersProcedure, admin.ListWorkers),
			unary(s, leafv1connect.AdminServiceFreeWorkerProcedure, admin.FreeWorker),
			unary(s, leafv1connect.AdminServiceCreatePoolProcedure, admin.CreatePool),
			unary(s, leafv1connect.AdminServiceListPoolsProcedure, admin.ListPools),
			unary(s, leafv1connect.AdminServiceStatusProcedure, admin.Status),
		},
	}
}

func (g *GRPC) workerService() *grpc.ServiceDesc {
	s := &grpcService{GRPC: g, tell: newAdmin(g.opts).tell, prepare: grpcVia}
	workers := &workerService{g.opts}
	return &grpc.ServiceDesc{
		ServiceName: leafv1connect.WorkerServiceName,
		Metadata:    leafv1.File_leaf_v1_worker_proto.Path(),
		Methods: []grpc.MethodDesc{
			unary(s, leafv1connect.WorkerServiceLoadProcedure, workers.Load),
			unary(s, leafv1connect.WorkerServiceSwapProcedure, workers.Swap),
			unary(s, leafv1connect.WorkerServiceListProcedure, workers.List),
			unary(s, leafv1connect.WorkerServiceClockProcedure, workers.Clock),
			unary(s, leafv1connect.WorkerServiceClaimLeaseProcedure, workers.ClaimLease),
			unary(s, leafv1connect.WorkerServiceRenewLeaseProcedure, workers.RenewLease),
			unary(s, leafv1connect.WorkerServiceReleaseLeaseProcedure, workers.ReleaseLease),
		},
	}
}

// grpcVia is withVia.
func grpcVia(ctx context.Context) context.Context {
	return hops.With(ctx, hops.Parse(strings.Join(metadata.ValueFromIncomingContext(ctx, hops.Via), ",")))
}

// A grpcHealth is a healthChecker for grpc-go.
type grpcHealth struct {
	grpc_health_v1.UnimplementedHealthServer
	checker healthChecker
}

// Check implements [grpc_health_v1.HealthServer].
func (h grpcHealth) Check(ctx context.Context, req *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	res, err := h.checker.Check(ctx, &grpchealth.CheckRequest{Service: req.GetService()})
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return nil, statusOf(coded)
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_ServingStatus(res.Status)}, nil
}
