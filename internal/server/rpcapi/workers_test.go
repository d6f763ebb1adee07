package rpcapi_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A keeper returns the test's answers.
type keeper struct {
	status worker.Status
	err    error
}

func (k *keeper) Status() worker.Status { return k.status }
func (k *keeper) Err() error            { return k.err }

func layouts(t *testing.T, names ...string) (ls issuer.Layouts) {
	t.Helper()
	for _, name := range names {
		preset, ok := snowflake.Preset(name)
		if !ok {
			t.Fatalf("no preset %s", name)
		}
		ls = append(ls, issuer.NamedLayout{Name: name, Layout: preset})
	}
	return ls
}

// newNode returns an unstarted node with these layouts.
func newNode(t *testing.T, ls issuer.Layouts) *snowflake.Node {
	t.Helper()
	var o snowflake.NodeOptions
	for _, l := range ls {
		o.Layouts = append(o.Layouts, snowflake.NodeLayout{Name: l.Name, Layout: l.Layout, Options: snowflake.Options{Wait: time.Millisecond}})
	}
	node, err := snowflake.NewNode(memory.New().Registry(), &o)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// backend is that of a server with the time-based scheme alone, which holds worker 1.
func backend(t *testing.T) (frontend.Options, *kv.Registry, *keeper) {
	t.Helper()
	ls := layouts(t, "js53", "leaf")
	node := newNode(t, ls)
	var records []worker.ServedLayout
	for _, l := range ls {
		node.Generator(l.Name).Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
		records = append(records, l.Record(l.Name))
	}
	times := issuer.NewTimes(issuer.Snowflake, ls, node.Generator, node.Explain)
	registry := memory.New().Registry()
	for id, r := range []worker.Record{{Owner: "a:1 pid 2", Instance: worker.Instance{1}, Term: 4, Horizon: time.Now().Add(time.Hour).Truncate(time.Millisecond), Seen: time.UnixMilli(5000), Offset: -3 * time.Millisecond}, {Instance: worker.Instance{2}, Term: 1, Horizon: time.UnixMilli(1), Layouts: records}} {
		r.Worker = int64(id)
		if _, err := registry.Swap(t.Context(), worker.Record{Worker: r.Worker}, r); err != nil {
			t.Fatal(err)
		}
	}
	k := &keeper{status: worker.Status{
		Held: true, Worker: 1, Term: 1, Floor: started, Horizon: started.Add(time.Hour), Since: started.Add(time.Minute), Extended: started.Add(2 * time.Minute),
		ClockStep: -1500 * time.Microsecond, PutBacks: 3, Lost: 4,
	}}
	return frontend.Options{
		IDs:     issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(times)}, &issuer.Options{Off: map[string]string{issuer.Segment: "not wanted"}}),
		Workers: issuer.NewWorkers(registry, k, nil),
		Layouts: ls,
	}, registry, k
}

func TestSnowflakeRPC(t *testing.T) {
	b, _, _ := backend(t)
	f := serveBackend(t, loopback, b)
	for key, layout := range map[string]string{"": "js53", "x": "js53", "js53": "js53", "leaf": "leaf"} {
		next, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Scheme: "snowflake", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		d, err := f.ids.Decode(t.Context(), &leafv1.DecodeRequest{Id: next.GetId(), Layout: layout})
		if err != nil || d.GetWorker() != 1 || d.GetLayout() != layout || time.Since(d.GetTime().AsTime()).Abs() > time.Minute || d.GetTick() == 0 {
			t.Errorf("key %q: ID %d is %v, %v in layout %s", key, next.GetId(), d, err, layout)
		}
	}
	take, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: "snowflake", Count: 3})
	if err != nil || len(take.GetRanges()) == 0 {
		t.Errorf("Take: %v, %v", take, err)
	}
	_, err = f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"})
	wantCode(t, "segment is off", err, connect.CodeUnimplemented)
	if err != nil && !strings.Contains(err.Error(), "not wanted") {
		t.Errorf("%v does not say why", err)
	}
	_, err = f.admin.ListTags(t.Context(), new(leafv1.ListTagsRequest))
	wantCode(t, "tags without segment", err, connect.CodeUnimplemented)
	_, err = f.admin.CreateTag(t.Context(), &leafv1.CreateTagRequest{Name: "a", Step: 1})
	wantCode(t, "create without segment", err, connect.CodeUnimplemented)
	_, err = f.admin.AlterTag(t.Context(), &leafv1.AlterTagRequest{Name: "a", Step: new(int64(1))})
	wantCode(t, "alter without segment", err, connect.CodeUnimplemented)
	_, err = f.admin.DeleteTag(t.Context(), &leafv1.DeleteTagRequest{Name: "a"})
	wantCode(t, "delete without segment", err, connect.CodeUnimplemented)
}

func TestDecode(t *testing.T) {
	f := serve(t, loopback) // without the scheme: the default layout is Java Leaf's
	d, err := f.ids.Decode(t.Context(), &leafv1.DecodeRequest{Id: 1169786042799259000})
	want := &leafv1.DecodeResponse{Time: timestamppb.New(time.UnixMilli(1567733700834)), Tick: new(int64(278898726177)), Worker: new(int64(39)), Sequence: new(int64(3448)), Layout: "leaf", TimeBits: 41, WorkerBits: 10, SequenceBits: 12}
	if diff := cmp.Diff(want, d, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, req := range []*leafv1.DecodeRequest{{Id: -1}, {Id: 1 << 53, Layout: "js53"}, {Id: 1, Layout: "nope"}} {
		_, err := f.ids.Decode(t.Context(), req)
		wantCode(t, req.String(), err, connect.CodeInvalidArgument)
	}
}

func TestWorkers(t *testing.T) {
	b, registry, k := backend(t)
	f := serveBackend(t, loopback, b)
	list, err := f.admin.ListWorkers(t.Context(), new(leafv1.ListWorkersRequest))
	horizon := list.GetWorkers()[0].GetHorizon()
	want := []*leafv1.Worker{
		{Worker: new(int64(0)), Held: true, Owner: "a:1 pid 2", Term: 4, Horizon: horizon, Seen: timestamppb.New(time.UnixMilli(5000)), ClockOffset: durationpb.New(-3 * time.Millisecond)},
		{Worker: new(int64(1)), Held: true, Term: 1, Horizon: timestamppb.New(time.UnixMilli(1)), Mine: true, Layouts: []string{"js53", "leaf"}},
	}
	if diff := cmp.Diff(want, list.GetWorkers(), protocmp.Transform()); err != nil || diff != "" || time.Until(horizon.AsTime()) < 50*time.Minute {
		t.Fatalf("ListWorkers: %v %s", err, diff)
	}
	freed, err := f.admin.FreeWorker(t.Context(), &leafv1.FreeWorkerRequest{Worker: new(int64(0))})
	if err != nil || freed.GetWorker().GetHeld() || freed.GetWorker().GetTerm() != 5 || time.Until(freed.GetWorker().GetHorizon().AsTime()) > 3*time.Minute {
		t.Errorf("FreeWorker: %v, %v", freed, err)
	}
	if r, err := registry.Load(t.Context(), 0); err != nil || r.Held() {
		t.Errorf("stored: %+v, %v", r, err)
	}
	_, err = f.admin.FreeWorker(t.Context(), &leafv1.FreeWorkerRequest{Worker: new(int64(1))})
	wantCode(t, "free the own one", err, connect.CodeFailedPrecondition)
	_, err = f.admin.FreeWorker(t.Context(), &leafv1.FreeWorkerRequest{Worker: new(int64(7))})
	wantCode(t, "free one that never was", err, connect.CodeInvalidArgument)
	_, err = f.admin.FreeWorker(t.Context(), &leafv1.FreeWorkerRequest{Worker: new(int64(-7))})
	wantCode(t, "free a negative one", err, connect.CodeInvalidArgument)
	k.status = worker.Status{}
	list, err = f.admin.ListWorkers(t.Context(), new(leafv1.ListWorkersRequest))
	if err != nil || list.GetWorkers()[1].GetMine() {
		t.Errorf("mine without a lease: %v, %v", list, err)
	}
}

func TestWorkersGuard(t *testing.T) {
	b, registry, _ := backend(t)
	f := serveBackend(t, everyone, b)
	if _, err := f.admin.ListWorkers(t.Context(), new(leafv1.ListWorkersRequest)); err != nil {
		t.Errorf("ListWorkers: %v", err)
	}
	_, err := f.admin.FreeWorker(t.Context(), new(leafv1.FreeWorkerRequest))
	wantCode(t, "free from afar", err, connect.CodePermissionDenied)
	if r, err := registry.Load(t.Context(), 0); err != nil || !r.Held() {
		t.Errorf("it was freed: %+v, %v", r, err)
	}
}

func TestNoWorkers(t *testing.T) {
	f := serve(t, loopback)
	_, err := f.admin.ListWorkers(t.Context(), new(leafv1.ListWorkersRequest))
	wantCode(t, "list", err, connect.CodeUnimplemented)
	_, err = f.admin.FreeWorker(t.Context(), new(leafv1.FreeWorkerRequest))
	wantCode(t, "free", err, connect.CodeUnimplemented)
	status, err := f.admin.Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || status.GetLease() != nil {
		t.Errorf("Status: %v, %v", status, err)
	}
}

func TestLeaseStatus(t *testing.T) {
	b, _, k := backend(t)
	var report health.Report
	b.Health = func() health.Report { return report }
	f := serveBackend(t, loopback, b)
	at := func(d time.Duration) *timestamppb.Timestamp { return timestamppb.New(started.Add(d)) }
	want := &leafv1.StatusResponse{
		Version: "v1.2.3", Started: at(0), Listen: "127.0.0.1:8080", Ready: true,
		Schemes: []*leafv1.SchemeStatus{{Name: "snowflake", Ready: true}, {Name: "uuid", Ready: true}, {Name: "segment", Off: "not wanted"}},
		Lease: &leafv1.Lease{
			Held: true, Worker: 1, Term: 1, Floor: at(0), Horizon: at(time.Hour), Since: at(time.Minute), Extended: at(2 * time.Minute),
			ClockStep: durationpb.New(-2 * time.Millisecond), PutBacks: 3, Lost: 4, Registry: "memory:workers",
			Layouts: []*leafv1.Layout{
				{Name: "js53", Epoch: timestamppb.New(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), Tick: durationpb.New(time.Millisecond),
					TimeBits: 41, WorkerBits: 5, SequenceBits: 7, Last: timestamppb.New(time.UnixMilli(1767225600000 + 1<<41 - 1))},
				{Name: "leaf", Epoch: timestamppb.New(time.UnixMilli(1288834974657)), Tick: durationpb.New(time.Millisecond),
					TimeBits: 41, WorkerBits: 10, SequenceBits: 12, Last: timestamppb.New(time.UnixMilli(1288834974657 + 1<<41 - 1))},
			},
		},
	}
	check := func() {
		t.Helper()
		got, err := f.admin.Status(t.Context(), new(leafv1.StatusRequest))
		if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("Status: %v %s", err, diff)
		}
	}
	check()
	k.err = errors.New("registry away")
	k.status = worker.Status{Worker: 9, Term: 8, Floor: started, Err: k.err, Lost: 5} // the rest of the earlier lease
	report.Conditions = []health.Condition{{Name: health.NoWorkerID, Schemes: []string{"snowflake"}, Down: true, Err: k.err}}
	want.Ready = false
	want.Conditions = []*leafv1.Condition{{Name: "no_worker_id", Schemes: []string{"snowflake"}, Down: true, Text: "registry away",
		Advice: hint.ForCondition(report.Conditions[0])}}
	want.Schemes[0].Ready, want.Schemes[0].Error = false, "registry away"
	want.Lease = &leafv1.Lease{Lost: 5, Error: "registry away", Registry: "memory:workers", Layouts: want.GetLease().GetLayouts()}
	check()
}

func TestLeaseErrors(t *testing.T) {
	b, _, _ := backend(t)
	node := newNode(t, b.Layouts)
	times := issuer.NewTimes(issuer.Snowflake, b.Layouts, node.Generator, node.Explain)
	b.IDs = issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(times)}, nil)
	f := serveBackend(t, loopback, b)
	_, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Scheme: "snowflake"})
	wantCode(t, "no lease", err, connect.CodeUnavailable)
	if e, ok := errors.AsType[*connect.Error](err); !ok || e.Meta().Get("Retry-After") != "1" || !strings.Contains(e.Message(), leaf.ErrNoLease.Error()) {
		t.Errorf("no Retry-After or no reason: %v", err)
	}
}
