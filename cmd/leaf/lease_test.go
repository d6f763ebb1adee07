package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
)

// A leaseServer renews leases until it hangs or refuses.
type leaseServer struct {
	leafv1connect.WorkerServiceClient
	ttl     time.Duration
	hangs   time.Time
	refuses time.Time
}

func (s *leaseServer) lease() *leafv1.PoolLease {
	now := time.Now()
	return &leafv1.PoolLease{Now: timestamppb.New(now), Limit: timestamppb.New(now.Add(s.ttl))}
}

func (s *leaseServer) RenewLease(ctx context.Context, _ *leafv1.RenewLeaseRequest) (*leafv1.RenewLeaseResponse, error) {
	switch now := time.Now(); {
	case now.After(s.refuses):
		return nil, connect.NewError(connect.CodeFailedPrecondition, errors.New("lost"))
	case now.After(s.hangs):
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &leafv1.RenewLeaseResponse{Lease: s.lease()}, nil
}

// An event is a signal that the command received, and the time left to its lease.
type event struct {
	signal os.Signal
	left   time.Duration
}

// TestLeaseEnds has a command that ignores SIGTERM lose its lease.
func TestLeaseEnds(t *testing.T) {
	const never = 1000 * time.Hour
	for name, test := range map[string]struct{ ttl, timeout, hangs, refuses, term, kill time.Duration }{
		"the server hangs":         {5 * time.Minute, 10 * time.Second, time.Hour, never, 5 * time.Second, 2 * time.Second},
		"the server refuses":       {5 * time.Minute, 10 * time.Second, never, time.Hour, 5 * time.Second, 2 * time.Second},
		"it hangs at once":         {12 * time.Second, 10 * time.Second, 0, never, 3 * time.Second, 1200 * time.Millisecond},
		"callers wait for long":    {time.Minute, time.Hour, 0, never, 5 * time.Second, 2 * time.Second},
		"the shortest lease":       {time.Second, 10 * time.Second, 0, never, 250 * time.Millisecond, 100 * time.Millisecond},
		"the shortest, and refuse": {time.Second, 10 * time.Second, never, time.Hour, 250 * time.Millisecond, 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cmd := &cobra.Command{}
				cmd.SetContext(t.Context())
				cmd.SetErr(io.Discard)
				start := time.Now()
				server := &leaseServer{ttl: test.ttl, hangs: start.Add(test.hangs), refuses: start.Add(test.refuses)}
				l := &lessee{Client: &cli.Client{Timeout: test.timeout}, cmd: cmd, calls: server}
				l.adopt(server.lease(), start)
				ended := make(chan error, 1)
				var events []event
				err := l.keep(nil, ended, func(s os.Signal) {
					events = append(events, event{s, time.Until(l.ends)})
					if s == os.Kill {
						ended <- errors.New("killed")
					}
				})
				if want := []event{{syscall.SIGTERM, test.term}, {os.Kill, test.kill}}; !slices.Equal(events, want) {
					t.Errorf("the command received %v, want %v", events, want)
				}
				if err == nil || time.Since(start) < min(test.hangs, test.refuses) {
					t.Errorf("the command ended after %v: %v", time.Since(start), err)
				}
			})
		})
	}
}
