package rpcapi

import (
	"time"

	"google.golang.org/grpc"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

// NewGRPCWithin is [NewGRPC] with another time for the message of a call.
func NewGRPCWithin(opts *frontend.Options, bodyTimeout time.Duration) *GRPC {
	return newGRPC(opts, bodyTimeout)
}

// Services lists the services.
func (g *GRPC) Services() map[string]grpc.ServiceInfo { return g.calls.GetServiceInfo() }
