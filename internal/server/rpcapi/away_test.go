package rpcapi_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/segment"
)

const nowhere = "127.0.0.1:1"

// serveAway starts all services over an absent store and registry.
func serveAway(t *testing.T, listen net.Addr) fixture {
	t.Helper()
	db, err := relay.Open([]string{"http://" + nowhere}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	set := segment.NewSet(db.Store(), nil)
	t.Cleanup(func() { _ = set.Close(context.Background()) }) // it holds nothing
	return serveBackend(t, listen, frontend.Options{
		IDs:     issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil),
		Tags:    issuer.NewTags(db.Store(), set.Server(), nil),
		Workers: issuer.NewWorkers(db.Registry(), nil, nil),
	})
}

// calling is a call of a client without its answer.
func calling[Req, Res any](call func(context.Context, *Req) (*Res, error), req *Req) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := call(ctx, req)
		return err
	}
}

// While the store and the registry are away, each call that needs them says that a later one may
// succeed.
func TestStoreAway(t *testing.T) {
	f := serveAway(t, loopback)
	one, record := int64(1), new(leafv1.WorkerRecord)
	for what, call := range map[string]func(context.Context) error{
		"PeekTag":     calling(f.admin.PeekTag, &leafv1.PeekTagRequest{Name: "order"}),
		"ObserveTag":  calling(f.admin.ObserveTag, &leafv1.ObserveTagRequest{Name: "order", Max: 1}),
		"ListTags":    calling(f.admin.ListTags, new(leafv1.ListTagsRequest)),
		"CreateTag":   calling(f.admin.CreateTag, &leafv1.CreateTagRequest{Name: "order", Step: 1}),
		"AlterTag":    calling(f.admin.AlterTag, &leafv1.AlterTagRequest{Name: "order", Step: &one}),
		"raise":       calling(f.admin.AlterTag, &leafv1.AlterTagRequest{Name: "order", RaiseBy: &one}),
		"DeleteTag":   calling(f.admin.DeleteTag, &leafv1.DeleteTagRequest{Name: "order"}),
		"ListWorkers": calling(f.admin.ListWorkers, new(leafv1.ListWorkersRequest)),
		"FreeWorker":  calling(f.admin.FreeWorker, &leafv1.FreeWorkerRequest{Worker: &one}),
		"Load":        calling(f.workers.Load, new(leafv1.LoadRequest)),
		"Swap":        calling(f.workers.Swap, &leafv1.SwapRequest{Old: record, New: record}),
		"List":        calling(f.workers.List, new(leafv1.ListRequest)),
		"Clock":       calling(f.workers.Clock, new(leafv1.ClockRequest)),
		"Next":        calling(f.ids.Next, &leafv1.NextRequest{Key: "order"}),
	} {
		err := call(t.Context())
		wantCode(t, what, err, connect.CodeUnavailable)
		coded, _ := errors.AsType[*connect.Error](err)
		if coded == nil || !tells[*errdetails.RetryInfo](coded) || coded.Meta().Get("Retry-After") == "" {
			t.Errorf("%s does not say when to try again: %v", what, err)
		}
	}
}

// Callers elsewhere learn no names of hosts.
func TestStoreAwayFromElsewhere(t *testing.T) {
	f := serveAway(t, everyone)
	for what, call := range map[string]func(context.Context) error{
		"PeekTag":     calling(f.admin.PeekTag, &leafv1.PeekTagRequest{Name: "order"}),
		"ListTags":    calling(f.admin.ListTags, new(leafv1.ListTagsRequest)),
		"ListWorkers": calling(f.admin.ListWorkers, new(leafv1.ListWorkersRequest)),
	} {
		err := call(t.Context())
		wantCode(t, what, err, connect.CodeUnavailable)
		if err != nil && strings.Contains(err.Error(), nowhere) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// tells reports whether the details of an error have a message of that type.
func tells[M any](err *connect.Error) bool {
	for _, d := range err.Details() {
		if value, e := d.Value(); e == nil {
			if _, ok := value.(M); ok {
				return true
			}
		}
	}
	return false
}
