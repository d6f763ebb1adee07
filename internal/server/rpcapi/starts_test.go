package rpcapi_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/worker"
)

// starts is a registry whose worker IDs are used once.
type starts struct {
	worker.Registry
	max int64
}

func (s *starts) Assign(context.Context, int64) (int64, error) { return 1, nil }
func (s *starts) Discard(int64)                                {}
func (s *starts) Supply() worker.Supply                        { return worker.Supply{Used: 2, Max: s.max} }
func (s *starts) Starts(context.Context, int) ([]worker.Start, error) {
	return []worker.Start{{Worker: 2, Host: "10.0.0.8", Port: "80", Kind: "container", Date: "2026-11-21"}, {Worker: 1, Host: "10.0.0.7", Port: "1-2", Kind: "actual", Date: "2026-11-20"}}, nil
}

func TestStarts(t *testing.T) {
	b, registry, k := backend(t)
	s := &starts{registry, 1023}
	b.Workers = issuer.NewWorkers(s, k, nil)
	f := serveBackend(t, loopback, b)
	list, err := f.admin.ListWorkers(t.Context(), new(leafv1.ListWorkersRequest))
	want := &leafv1.Starts{Used: 2, Max: 1023, Left: 1021, Latest: []*leafv1.Start{
		{Worker: 2, Host: "10.0.0.8", Port: "80", Kind: "container", Date: "2026-11-21"},
		{Worker: 1, Host: "10.0.0.7", Port: "1-2", Kind: "actual", Date: "2026-11-20", Mine: true},
	}}
	if diff := cmp.Diff(want, list.GetStarts(), protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("ListWorkers: %v %s", err, diff)
	}
	_, err = f.admin.FreeWorker(t.Context(), &leafv1.FreeWorkerRequest{Worker: new(int64(0))})
	wantCode(t, "free", err, connect.CodeUnimplemented)
	for limit, want := range map[int64]*int64{1023: new(int64(1021)), 2: new(int64(0)), 0: nil} {
		s.max = limit
		status, err := f.admin.Status(t.Context(), new(leafv1.StatusRequest))
		if diff := cmp.Diff(want, status.GetLease().StartsLeft); err != nil || diff != "" {
			t.Errorf("of %d: %v %s", limit, err, diff)
		}
	}
}
