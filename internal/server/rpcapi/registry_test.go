package rpcapi_test

import (
	"testing"
	"time"

	"connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

func TestWorkerService(t *testing.T) {
	b, _, _ := backend(t)
	f := serveBackend(t, loopback, b)
	empty := &leafv1.WorkerRecord{Worker: 77}
	one := &leafv1.WorkerRecord{Worker: 77, Record: `{"v":1,"instance":"","term":1,"horizon":0}`}
	if got, err := f.workers.Load(t.Context(), &leafv1.LoadRequest{Worker: 77}); err != nil || got.GetRecord().GetRecord() != "" {
		t.Errorf("load: %v, %v", got, err)
	}
	if _, err := f.workers.Swap(t.Context(), &leafv1.SwapRequest{Old: empty, New: one}); err != nil {
		t.Error(err)
	}
	_, err := f.workers.Swap(t.Context(), &leafv1.SwapRequest{Old: empty, New: one})
	wantCode(t, "swap from another record", err, connect.CodeFailedPrecondition)
	if got, err := f.workers.Load(t.Context(), &leafv1.LoadRequest{Worker: 77}); err != nil || got.GetRecord().GetRecord() != one.GetRecord() {
		t.Errorf("load: %v, %v", got, err)
	}
	got, err := f.workers.Clock(t.Context(), new(leafv1.ClockRequest)) // the registry has no clock
	if err != nil || time.Since(got.GetTime().AsTime()).Abs() > time.Minute {
		t.Errorf("clock: %v, %v", got, err)
	}
	_, err = f.workers.Swap(t.Context(), &leafv1.SwapRequest{Old: one, New: &leafv1.WorkerRecord{Worker: 77, Record: "x"}})
	if err == nil {
		t.Error("garbage was written")
	}
}

// Only servers with the scope worker may claim worker IDs.
func TestWorkerServiceNeedsItsRight(t *testing.T) {
	b, _, _ := backend(t)
	b.Access = access.New(access.Options{PublicRead: true})
	f := serveBackend(t, everyone, b)
	_, err := f.workers.Load(t.Context(), new(leafv1.LoadRequest))
	wantCode(t, "load", err, connect.CodePermissionDenied)
	_, err = f.workers.Swap(t.Context(), new(leafv1.SwapRequest))
	wantCode(t, "swap", err, connect.CodePermissionDenied)
	_, err = f.workers.List(t.Context(), new(leafv1.ListRequest))
	wantCode(t, "list", err, connect.CodePermissionDenied)
	_, err = f.workers.Clock(t.Context(), new(leafv1.ClockRequest))
	wantCode(t, "clock", err, connect.CodePermissionDenied)
}

func TestWorkerServiceWithoutRegistry(t *testing.T) {
	f := serveBackend(t, loopback, frontend.Options{IDs: issuer.New(nil, nil)})
	_, err := f.workers.Load(t.Context(), new(leafv1.LoadRequest))
	wantCode(t, "load", err, connect.CodeUnimplemented)
}
