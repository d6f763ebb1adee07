package rpcapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
)

// serviceNames are the services of the shared port, for the reflection of grpc-go. It serves the
// port of gRPC alone too; connectrpc.com/grpcreflect costs every start of the program a millisecond.
type serviceNames []string

// GetServiceInfo implements [reflection.ServiceInfoProvider].
func (names serviceNames) GetServiceInfo() map[string]grpc.ServiceInfo {
	all := map[string]grpc.ServiceInfo{}
	for _, name := range names {
		all[name] = grpc.ServiceInfo{}
	}
	return all
}

// registerReflection lets tools such as grpcurl list the services, which are no secret. The messages
// of v1alpha are those of v1.
func registerReflection(mux *http.ServeMux) {
	server := reflection.NewServerV1(reflection.ServerOptions{Services: serviceNames{leafv1connect.LeafServiceName,
		leafv1connect.AdminServiceName, leafv1connect.WorkerServiceName, grpchealth.HealthV1ServiceName}})
	for _, version := range []string{"v1", "v1alpha"} {
		procedure := "/grpc.reflection." + version + ".ServerReflection/ServerReflectionInfo"
		mux.Handle(procedure, connect.NewBidiStreamHandler(procedure, func(_ context.Context, stream *messages) error {
			err := server.ServerReflectionInfo(reflectionStream{messages: stream})
			if s, ok := status.FromError(err); ok && err != nil {
				return connect.NewError(connect.Code(s.Code()), errors.New(s.Message()))
			}
			return err
		}, connect.WithReadMaxBytes(maxRequest)))
	}
}

type messages = connect.BidiStream[reflectionv1.ServerReflectionRequest, reflectionv1.ServerReflectionResponse]

// A reflectionStream is a stream of connect for grpc-go. Reflection only sends and receives.
type reflectionStream struct {
	*messages
	grpc.ServerStream // nil
}

// Recv implements [grpc.BidiStreamingServer].
func (s reflectionStream) Recv() (*reflectionv1.ServerReflectionRequest, error) {
	req, err := s.Receive()
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	return req, err
}
