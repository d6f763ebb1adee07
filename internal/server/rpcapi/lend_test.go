package rpcapi_test

import (
	"net/http"
	"testing"

	"connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/segment"
)

func TestAdvanceAndReturn(t *testing.T) {
	f := serve(t, everyone)
	got, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order"})
	if err != nil || got.GetRange().GetStart() != 100 || got.GetRange().GetEnd() != 110 || got.GetStep() != 10 {
		t.Fatalf("got %v, %v", got, err)
	}
	back := &leafv1.ReturnRequest{Tag: "order", Start: 104, End: 110, Version: got.GetVersion()}
	if _, err := f.ids.Return(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	_, err = f.ids.Return(t.Context(), back)
	wantCode(t, "a second return", err, connect.CodeFailedPrecondition)
	if next, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"}); err != nil || next.GetId() != 104 {
		t.Errorf("next: %v, %v", next, err)
	}
	for tag, want := range map[string]connect.Code{"nope": connect.CodeNotFound, "": connect.CodeInvalidArgument} {
		_, err = f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: tag})
		wantCode(t, "advance "+tag, err, want)
		_, err = f.ids.Return(t.Context(), &leafv1.ReturnRequest{Tag: tag, Version: "x"})
		wantCode(t, "return "+tag, err, want)
	}
	_, err = f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: -1})
	wantCode(t, "advance by -1", err, connect.CodeInvalidArgument)
	if got, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: 1 << 40}); err != nil || got.GetRange().GetEnd()-got.GetRange().GetStart() > 1000 {
		t.Errorf("got %v, %v, want at most max_range", got, err)
	}
}

// Loans count for the limits; IDs beyond them go back.
func TestAdvanceWithinLimits(t *testing.T) {
	gate := access.New(access.Options{Local: true, Limits: access.Limits{Client: access.Limit{Quota: 25}}})
	f := serveGated(t, gate)
	for _, want := range []int64{100, 110} {
		got, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: 10})
		if err != nil || got.GetRange().GetStart() != want {
			t.Fatalf("got %v, %v, want a range from %d", got, err, want)
		}
	}
	_, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: 10})
	wantCode(t, "beyond the quota", err, connect.CodeResourceExhausted)
	if got, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: 5}); err != nil || got.GetRange().GetStart() != 120 {
		t.Errorf("got %v, %v, want a range from 120", got, err)
	}
}

// A caller beyond its limits moves no counter with any request; a failed call costs nothing.
func TestAdvanceChargesFirst(t *testing.T) {
	gate := access.New(access.Options{Local: true, Limits: access.Limits{Client: access.Limit{Quota: 5}}})
	f := serveGated(t, gate)
	_, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "unknown", Count: 5})
	wantCode(t, "an unknown tag", err, connect.CodeNotFound)
	if _, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: 5}); err != nil {
		t.Fatal(err)
	}
	before := maxID(t, f.store, "order")
	for range 100 {
		for _, count := range []int64{0, 1, 10, 1000} {
			_, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: count})
			wantCode(t, "beyond the quota", err, connect.CodeResourceExhausted)
		}
	}
	if after := maxID(t, f.store, "order"); after > before+20 { // a refill after the first grant may be under way
		t.Errorf("the counter moved from %d to %d for callers that got nothing", before, after)
	}
}

// A loan without a count is charged with the granted IDs. One that goes beyond the limits returns to
// the stock.
func TestAdvanceChargesTheGrant(t *testing.T) {
	gate := access.New(access.Options{Local: true, Limits: access.Limits{Client: access.Limit{Quota: 25}}})
	f := serveGated(t, gate)
	for _, want := range []int64{100, 110} {
		got, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order"})
		if err != nil || got.GetRange().GetStart() != want || got.GetRange().GetEnd() != want+10 {
			t.Fatalf("got %v, %v, want ten IDs from %d", got, err, want)
		}
	}
	_, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order"})
	wantCode(t, "beyond the quota", err, connect.CodeResourceExhausted)
	if got, err := f.ids.Advance(t.Context(), &leafv1.AdvanceRequest{Tag: "order", Count: 2}); err != nil || got.GetRange().GetStart() != 120 {
		t.Errorf("got %v, %v, want a range from 120", got, err)
	}
}

func maxID(t *testing.T, s segment.Store, name string) int64 {
	t.Helper()
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tag.Name == name {
			return tag.MaxID
		}
	}
	t.Fatalf("no tag %q", name)
	return 0
}

func TestAnswersNameTheRoute(t *testing.T) {
	f := serveBackend(t, loopback, frontend.Options{IDs: issuer.New(nil, nil), Route: func() []string { return []string{"A", "B"} }})
	for _, body := range []string{`{"tag":"order"}`, `{`} { // both are errors without a store
		if res := f.post(t, "/leaf.v1.LeafService/Advance", body); res.Header.Get(hops.Route) != "A,B" || res.StatusCode == http.StatusOK {
			t.Errorf("%s: %d, route %q", body, res.StatusCode, res.Header.Get(hops.Route))
		}
	}
}

func TestPeekAndObserve(t *testing.T) {
	f := serve(t, loopback)
	peek := func(next int64) *leafv1.PeekTagResponse {
		t.Helper()
		p, err := f.admin.PeekTag(t.Context(), &leafv1.PeekTagRequest{Name: "order"})
		if err != nil || p.GetNext() != next {
			t.Errorf("peek: %v, %v, want next %d", p, err, next)
		}
		return p
	}
	if p := peek(100); p.GetStock() != 0 || p.GetTag().GetMaxId() != 100 {
		t.Errorf("before the first ID: %v", p)
	}
	if _, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"}); err != nil {
		t.Fatal(err)
	}
	if p := peek(101); p.GetStock() < 9 { // more if the next range has come
		t.Errorf("after the first ID: %v", p)
	}
	res, err := f.admin.ObserveTag(t.Context(), &leafv1.ObserveTagRequest{Name: "order", Max: 7}) // never down
	if err != nil || res.GetDropped() != 0 || res.GetTag().GetMaxId() < 110 {
		t.Errorf("observe 7: %v, %v", res, err)
	}
	res, err = f.admin.ObserveTag(t.Context(), &leafv1.ObserveTagRequest{Name: "order", Max: 104})
	if err != nil || res.GetDropped() != 4 || res.GetOthersBelow() != 105 {
		t.Errorf("observe 104: %v, %v", res, err)
	}
	peek(105)
	res, err = f.admin.ObserveTag(t.Context(), &leafv1.ObserveTagRequest{Name: "order", Max: 5000})
	if err != nil || res.GetDropped() < 5 || res.GetOthersBelow() < 110 || res.GetTag().GetMaxId() < 5001 { // more if a refill was under way
		t.Errorf("observe 5000: %v, %v", res, err)
	}
	if next, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"}); err != nil || next.GetId() < 5001 || next.GetId() > res.GetTag().GetMaxId() {
		t.Errorf("next: %v, %v", next, err)
	}
	for _, tt := range []struct {
		name string
		max  int64
		want connect.Code
	}{{"nope", 5, connect.CodeNotFound}, {"order", -1, connect.CodeInvalidArgument}, {"order", 1<<63 - 1, connect.CodeOutOfRange}, {"", 5, connect.CodeInvalidArgument}} {
		_, err := f.admin.ObserveTag(t.Context(), &leafv1.ObserveTagRequest{Name: tt.name, Max: tt.max})
		wantCode(t, "observe", err, tt.want)
	}
	_, err = f.admin.PeekTag(t.Context(), &leafv1.PeekTagRequest{Name: "nope"})
	wantCode(t, "peek", err, connect.CodeNotFound)
}

// Another server may continue below, from its stock.
func TestObserveNamesWhatOthersHold(t *testing.T) {
	f := serve(t, loopback)
	other := segment.NewSet(f.store, nil)
	defer other.Close(t.Context())
	if _, err := other.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	res, err := f.admin.ObserveTag(t.Context(), &leafv1.ObserveTagRequest{Name: "order", Max: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := other.Next(t.Context(), "order"); err != nil || id >= res.GetOthersBelow() {
		t.Errorf("the other server issued %d, %v: not below %d", id, err, res.GetOthersBelow())
	}
}

// Another server's earlier stock does not return when the counter was already above: it can give
// none of it back.
func TestObservedIsNotGivenBack(t *testing.T) {
	f := serve(t, loopback)
	other := segment.NewSet(f.store, nil)
	if _, err := other.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	const largest = 105 // the other server holds it
	if _, err := f.admin.ObserveTag(t.Context(), &leafv1.ObserveTagRequest{Name: "order", Max: largest}); err != nil {
		t.Fatal(err)
	}
	_ = other.Close(t.Context()) // which says so
	if next, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"}); err != nil || next.GetId() <= largest {
		t.Errorf("next: %v, %v", next, err)
	}
}
