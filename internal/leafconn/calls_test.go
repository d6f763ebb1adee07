package leafconn

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A procedure is a method of a connection, its request, and its result.
type procedure struct {
	call    func(context.Context, *Conn) (any, error)
	name    string        // on the wire
	sends   proto.Message // as the only request
	answer  proto.Message
	want    any
	repeats bool // a call without an answer goes to another server
}

func tagMessage() *leafv1.Tag {
	return &leafv1.Tag{Name: "order", MaxId: 7, Step: 5, Description: "d", Updated: timestamppb.New(time.Unix(9, 0)), Options: map[string]string{"x": "y"}}
}

func procedures() map[string]procedure {
	tag := segment.Tag{Name: "order", MaxID: 7, Step: 5, Updated: time.Unix(9, 0).UTC(), Options: segment.TagOptions{"description": "d", "x": "y"}}
	record := worker.Record{Worker: 3, Term: 1, Owner: "me", Version: "v1", Horizon: time.UnixMilli(5000).UTC()}
	message, _ := RecordMessage(record)
	newer := record
	newer.Version = "v2"
	one, five := int64(1), int64(5)
	ranges := []*leafv1.Range{{Start: 1, End: 3}, {Start: 8, End: 9}}
	return map[string]procedure{
		"Advance": {func(ctx context.Context, c *Conn) (any, error) { return Store{c}.Advance(ctx, "order", 10) },
			"Advance", &leafv1.AdvanceRequest{Tag: "order", Count: 10},
			&leafv1.AdvanceResponse{Range: &leafv1.Range{Start: 1, End: 11}, Step: 5, Version: "v", Store: "s"},
			segment.Grant{Range: leaf.Range{Start: 1, End: 11}, Step: 5, Version: "v", Store: "s", Guarded: true}, true},
		"AdvanceStrict": {func(ctx context.Context, c *Conn) (any, error) {
			return Store{c}.AdvanceStrict(ctx, "order", "2026-11-28", 2)
		},
			"Advance", &leafv1.AdvanceRequest{Tag: "order", Count: 2, Strict: true, Period: new("2026-11-28")},
			&leafv1.AdvanceResponse{Range: &leafv1.Range{Start: 1, End: 3}, Step: 5, Strict: true, Period: "2026-11-28"},
			segment.Grant{Range: leaf.Range{Start: 1, End: 3}, Step: 5, Guarded: true, Period: "2026-11-28"}, true},
		"AdvanceMasked": {func(ctx context.Context, c *Conn) (any, error) { return Store{c}.AdvanceMasked(ctx, "order", 2) },
			"Advance", &leafv1.AdvanceRequest{Tag: "order", Count: 2, Strict: true, Period: new(""), Masked: true},
			&leafv1.AdvanceResponse{Step: 5, Strict: true, Masked: []int64{8, 4}},
			segment.Grant{Step: 5, Guarded: true, Masked: []int64{8, 4}}, true},
		"Return": {func(ctx context.Context, c *Conn) (any, error) {
			return nil, Store{c}.Return(ctx, "order", segment.Grant{Range: leaf.Range{Start: 1, End: 11}, Version: "v"}, 4)
		}, "Return", &leafv1.ReturnRequest{Tag: "order", Start: 4, End: 11, Version: "v"}, &leafv1.ReturnResponse{}, nil, false},
		"Create": {func(ctx context.Context, c *Conn) (any, error) { return nil, Store{c}.Create(ctx, tag) },
			"CreateTag", &leafv1.CreateTagRequest{Name: "order", Step: 5, MaxId: proto.Int64(7), Description: "d", Options: map[string]string{"x": "y"}},
			&leafv1.CreateTagResponse{Tag: tagMessage()}, nil, false},
		"Alter": {func(ctx context.Context, c *Conn) (any, error) {
			return Store{c}.Alter(ctx, "order", segment.Change{Step: &five, Options: segment.TagOptions{"x": "y", "description": "d"}})
		}, "AlterTag", &leafv1.AlterTagRequest{Name: "order", Step: &five, Description: new("d"), Options: map[string]string{"x": "y"}},
			&leafv1.AlterTagResponse{Tag: tagMessage()}, tag, false},
		"Alter by force": {func(ctx context.Context, c *Conn) (any, error) {
			return Store{c}.Alter(ctx, "order", segment.Change{MaxID: &five, Force: true})
		}, "AlterTag", &leafv1.AlterTagRequest{Name: "order", MaxId: &five, Force: true}, &leafv1.AlterTagResponse{Tag: tagMessage()}, tag, false},
		"Alter nothing": {func(ctx context.Context, c *Conn) (any, error) { return Store{c}.Alter(ctx, "order", segment.Change{}) },
			"ListTags", &leafv1.ListTagsRequest{PageSize: TagPage}, &leafv1.ListTagsResponse{Tags: []*leafv1.Tag{{Name: "a"}, tagMessage(), {Name: "b"}}}, tag, true},
		"RaiseTag": {func(ctx context.Context, c *Conn) (any, error) { return Store{c}.RaiseTag(ctx, "order", 5) },
			"AlterTag", &leafv1.AlterTagRequest{Name: "order", RaiseBy: &five}, &leafv1.AlterTagResponse{Tag: tagMessage()}, tag, false},
		"Delete": {func(ctx context.Context, c *Conn) (any, error) { return nil, Store{c}.Delete(ctx, "order") },
			"DeleteTag", &leafv1.DeleteTagRequest{Name: "order"}, &leafv1.DeleteTagResponse{}, nil, false},
		"Periods": {func(ctx context.Context, c *Conn) (any, error) { return Store{c}.Periods(ctx, "order") },
			"ListPeriods", &leafv1.ListPeriodsRequest{Name: "order"},
			&leafv1.ListPeriodsResponse{Periods: []*leafv1.Period{{Name: "2026", MaxId: 4}, {Name: "2027", MaxId: 6}}},
			[]segment.Period{{Name: "2026", MaxID: 4}, {Name: "2027", MaxID: 6}}, true},
		"RemovePeriod": {func(ctx context.Context, c *Conn) (any, error) {
			return nil, Store{c}.RemovePeriod(ctx, "order", "2026")
		},
			"RemovePeriod", &leafv1.RemovePeriodRequest{Name: "order", Period: "2026"}, &leafv1.RemovePeriodResponse{}, nil, false},
		"Peek": {func(ctx context.Context, c *Conn) (any, error) { return c.Peek(ctx, "order") },
			"PeekTag", &leafv1.PeekTagRequest{Name: "order"}, &leafv1.PeekTagResponse{Next: 9, Tag: tagMessage()}, int64(9), true},
		"ObserveTag": {func(ctx context.Context, c *Conn) (any, error) {
			now, below, err := Store{c}.ObserveTag(ctx, "order", 6)
			return []any{now, below}, err
		}, "ObserveTag", &leafv1.ObserveTagRequest{Name: "order", Max: 6}, &leafv1.ObserveTagResponse{Tag: tagMessage(), OthersBelow: &five}, []any{tag, five}, false},
		"Take": {func(ctx context.Context, c *Conn) (any, error) { return c.Take(ctx, "uid", "k", 3) },
			"Take", &leafv1.TakeRequest{Scheme: "uid", Key: "k", Count: 3, TellStore: true}, &leafv1.TakeResponse{Ranges: ranges, Store: "s"},
			[]leaf.Range{{Start: 1, End: 3}, {Start: 8, End: 9}}, true},
		"Issue": {func(ctx context.Context, c *Conn) (any, error) {
			return c.Issue(ctx, &leafv1.TakeRequest{Key: "k", Period: "2026", Form: true}, 1)
		}, "Take", &leafv1.TakeRequest{Key: "k", Count: 1, TellStore: true, Period: "2026", Form: true},
			&leafv1.TakeResponse{Texts: []string{"R-1"}, Period: "2026"}, Issued{[]leaf.Range{}, []string{"R-1"}, "2026"}, true},
		"Identities": {func(ctx context.Context, c *Conn) (any, error) { return c.Identities(ctx) },
			"Status", &leafv1.StatusRequest{}, &leafv1.StatusResponse{Store: &leafv1.StoreStatus{Identity: "s"}}, map[string]string{"store": "s"}, true},
		"Load": {func(ctx context.Context, c *Conn) (any, error) { return Registry{c}.Load(ctx, 3) },
			"Load", &leafv1.LoadRequest{Worker: 3}, &leafv1.LoadResponse{Record: message}, record, true},
		"Swap": {func(ctx context.Context, c *Conn) (any, error) {
			return Registry{c}.Swap(ctx, worker.Record{Worker: 3}, record)
		},
			"Swap", &leafv1.SwapRequest{Old: &leafv1.WorkerRecord{Worker: 3}, New: message}, &leafv1.SwapResponse{Version: []byte("v2")}, newer, false},
		"List": {func(ctx context.Context, c *Conn) (any, error) { return Registry{c}.List(ctx) },
			"List", &leafv1.ListRequest{}, &leafv1.ListResponse{Records: []*leafv1.WorkerRecord{{Worker: one}, message}}, []worker.Record{{Worker: 1}, record}, true},
		"Clock": {func(ctx context.Context, c *Conn) (any, error) { return Registry{c}.Clock(ctx) },
			"Clock", &leafv1.ClockRequest{}, &leafv1.ClockResponse{Time: timestamppb.New(time.Unix(5, 0))}, time.Unix(5, 0).UTC(), true},
		"ServerEpoch": {func(ctx context.Context, c *Conn) (any, error) { return Registry{c}.ServerEpoch(ctx) },
			"Clock", &leafv1.ClockRequest{}, &leafv1.ClockResponse{MayLoseWrites: true, Incarnation: "i", Untracked: true},
			worker.ServerEpoch{Lossy: true, Incarnation: "i", Untracked: true}, true},
	}
}

// Each method sends its request once and returns the answer's values. It passes a refusal on, and
// asks another server only where a repeated call is harmless.
func TestProcedures(t *testing.T) {
	for name, p := range procedures() {
		one, two := startFake(t, says(p.answer, nil)), startFake(t, says(p.answer, nil))
		c := openTo(t, Options{}, one, two)
		got, err := p.call(t.Context(), c)
		if g, ok := got.(segment.Grant); ok {
			if g.Source != one.host() {
				t.Errorf("%s: the source is %q", name, g.Source)
			}
			g.Source = ""
			got = g
		}
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", p.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, p.want)
		}
		sent := p.sends.ProtoReflect().New().Interface()
		if calls := one.calls(); len(calls) != 1 || calls[0].procedure != p.name || proto.Unmarshal(calls[0].body, sent) != nil || !proto.Equal(sent, p.sends) {
			t.Errorf("%s sent %v in %d calls, want %v", name, sent, len(calls), p.sends)
		}
		one.set(says(nil, refuses(connect.CodeFailedPrecondition, "CONFLICT")))
		two.set(says(p.answer, nil))
		if got, err := p.call(t.Context(), c); !errors.Is(err, worker.ErrConflict) || !empty(got) || len(two.calls()) > 0 {
			t.Errorf("%s, refused: got %+v, %v and %d further calls", name, got, err, len(two.calls()))
		}
		one.set(says(nil, refuses(connect.CodeUnavailable, "STORE_UNAVAILABLE")))
		switch got, err := p.call(t.Context(), c); {
		case p.name == "ObserveTag": // all servers are told
		case p.repeats != (err == nil) || !p.repeats && !errors.Is(err, errAway) || len(two.calls()) > 0 != p.repeats:
			t.Errorf("%s, no answer: got %+v, %v and %d further calls", name, got, err, len(two.calls()))
		}
		_ = c.Close()
		if got, err := p.call(t.Context(), c); !errors.Is(err, leaf.ErrClosed) || !empty(got) {
			t.Errorf("%s, closed: got %+v, %v", name, got, err)
		}
	}
}

// empty reports a result without anything in it.
func empty(got any) bool {
	v := reflect.ValueOf(got)
	if pair, ok := got.([]any); ok {
		return empty(pair[0]) && empty(pair[1])
	}
	return !v.IsValid() || v.IsZero()
}

// A name that no tag has is refused without a call.
func TestNamesWithoutACall(t *testing.T) {
	f := startFake(t, says(nil, refuses(connect.CodeInternal, "")))
	c := openTo(t, Options{}, f)
	s, ctx := Store{c}, t.Context()
	for name, call := range map[string]func() error{
		"Advance":    func() error { _, err := s.Advance(ctx, "", 1); return err },
		"Return":     func() error { return s.Return(ctx, "", segment.Grant{}, 1) },
		"Alter":      func() error { _, err := s.Alter(ctx, "", segment.Change{}); return err },
		"Delete":     func() error { return s.Delete(ctx, "") },
		"ObserveTag": func() error { _, _, err := s.ObserveTag(ctx, "", 1); return err },
		"RaiseTag":   func() error { _, err := s.RaiseTag(ctx, "", 1); return err },
	} {
		if err := call(); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := int64(-1)
	for name, call := range map[string]func() error{
		"Create":    func() error { return s.Create(ctx, segment.Tag{Name: "a"}) },
		"Alter":     func() error { _, err := s.Alter(ctx, "a", segment.Change{Step: &bad}); return err },
		"Take 0":    func() error { _, err := c.Take(ctx, "", "a", 0); return err },
		"Take 2^31": func() error { _, err := c.Take(ctx, "", "a", 1<<31); return err },
		"Return":    func() error { return s.Return(ctx, "a", segment.Grant{Source: "elsewhere:1"}, 1) },
	} {
		if err := call(); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := len(f.calls()); n > 0 {
		t.Errorf("%d calls", n)
	}
	if _, err := c.Take(ctx, "", "a", 1<<31-1); errors.Is(err, leaf.ErrInvalid) || len(f.calls()) != 1 {
		t.Errorf("the largest count: %v", err)
	}
}

// An answer that does not fit its request is an error: the server has an older release, or the tag
// is another one.
func TestAnswersThatDoNotFit(t *testing.T) {
	f := startFake(t, nil)
	c := openTo(t, Options{}, f)
	s, ctx, one := Store{c}, t.Context(), int64(1)
	masked := &leafv1.Tag{Name: "a", Options: map[string]string{segment.OptionMask: "k1:10^9:aaaaaaaaaaaa"}}
	for name, tt := range map[string]struct {
		answer proto.Message
		call   func() (any, error)
		want   error
	}{
		"no strict order": {&leafv1.AdvanceResponse{Range: &leafv1.Range{End: 1}}, func() (any, error) { return s.AdvanceStrict(ctx, "a", "", 1) }, leaf.ErrUnsupported},
		"no mask":         {&leafv1.AdvanceResponse{Strict: true, Range: &leafv1.Range{End: 1}}, func() (any, error) { return s.AdvanceMasked(ctx, "a", 1) }, leaf.ErrUnknownTag},
		"no period":       {&leafv1.TakeResponse{}, func() (any, error) { return c.Issue(ctx, &leafv1.TakeRequest{Period: "2026"}, 1) }, leaf.ErrUnsupported},
		"no form":         {&leafv1.TakeResponse{}, func() (any, error) { return c.Issue(ctx, &leafv1.TakeRequest{Form: true}, 1) }, leaf.ErrUnsupported},
		"text":            {&leafv1.TakeResponse{Texts: []string{"x"}}, func() (any, error) { return c.Take(ctx, "uuid", "", 1) }, leaf.ErrInvalid},
		"hidden numbers":  {&leafv1.PeekTagResponse{Next: 1, Tag: masked}, func() (any, error) { return c.Peek(ctx, "a") }, leaf.ErrInvalid},
		"a missing tag":   {&leafv1.ListTagsResponse{Tags: []*leafv1.Tag{{Name: "b"}}}, func() (any, error) { return s.Alter(ctx, "a", segment.Change{}) }, leaf.ErrUnknownTag},
		"a lost option": {&leafv1.CreateTagResponse{}, func() (any, error) {
			return nil, s.Create(ctx, segment.Tag{Name: "a", Step: 1, Options: segment.TagOptions{"x": "y"}})
		}, leaf.ErrUnsupported},
	} {
		f.set(says(tt.answer, nil))
		if got, err := tt.call(); !errors.Is(err, tt.want) || !empty(got) {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, tt.want)
		}
	}
	for _, ranges := range [][]*leafv1.Range{nil, {{Start: 1, End: 2}}, {{Start: 1, End: 4}}, {{}, {Start: 1, End: 3}}} {
		f.set(says(&leafv1.TakeResponse{Ranges: ranges}, nil))
		got, err1 := c.Take(ctx, "", "a", 2)
		issued, err2 := c.Issue(ctx, &leafv1.TakeRequest{}, 2)
		if err1 == nil || err2 == nil || got != nil || issued.Ranges != nil {
			t.Errorf("%v is taken for two IDs: %v, %v", ranges, err1, err2)
		}
	}
	f.set(says(&leafv1.AlterTagResponse{Tag: &leafv1.Tag{Name: "a"}}, nil))
	if _, err := s.Alter(ctx, "a", segment.Change{Step: &one, Options: segment.TagOptions{"x": "y"}}); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("a lost change: %v", err)
	}
	for _, r := range []*leafv1.TakeRequest{{}, {Period: "2026"}} {
		f.set(says(&leafv1.TakeResponse{Period: "2026", Ranges: []*leafv1.Range{{Start: 1, End: 2}}}, nil)) // the present one, too
		if _, err := c.Issue(ctx, r, 1); err != nil {
			t.Errorf("%v: %v", r, err)
		}
	}
	f.set(says(&leafv1.ListResponse{Records: []*leafv1.WorkerRecord{{Record: "x"}}}, nil))
	if all, err := (Registry{c}).List(ctx); err == nil || all != nil {
		t.Errorf("a damaged record: %v, %v", all, err)
	}
	f.set(says(&leafv1.LoadResponse{Record: &leafv1.WorkerRecord{Worker: 3, Record: "x"}}, nil))
	if got, err := (Registry{c}).Load(ctx, 3); err == nil || !got.IsZero() || got.Worker != 0 {
		t.Errorf("a damaged record: %v, %v", got, err)
	}
}

// A raised counter makes the server drop its stock below; a lowered or a forced one does not.
func TestAlterDropsTheStock(t *testing.T) {
	f := startFake(t, nil)
	s := Store{openTo(t, Options{}, f)}
	zero, five := int64(0), int64(5)
	for name, tt := range map[string]struct {
		change segment.Change
		max    int64 // -1: no second call
	}{
		"raised": {segment.Change{MaxID: &five}, 4}, "to zero": {segment.Change{MaxID: &zero}, -1},
		"by force": {segment.Change{MaxID: &five, Force: true}, -1}, "another step": {segment.Change{Step: &five}, -1},
	} {
		f.set(func(procedure string, _ []byte) (proto.Message, error) {
			if procedure == "AlterTag" {
				return &leafv1.AlterTagResponse{}, nil
			}
			return &leafv1.ObserveTagResponse{}, nil
		})
		if _, err := s.Alter(t.Context(), "a", tt.change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		calls, req := f.calls(), new(leafv1.ObserveTagRequest)
		if len(calls) == 2 && (proto.Unmarshal(calls[1].body, req) != nil || req.GetName() != "a" || req.GetMax() != tt.max) || len(calls) == 2 != (tt.max >= 0) {
			t.Errorf("%s: %d calls, %v", name, len(calls), req)
		}
	}
	f.set(func(procedure string, _ []byte) (proto.Message, error) {
		if procedure == "AlterTag" {
			return &leafv1.AlterTagResponse{}, nil
		}
		return nil, refuses(connect.CodeUnavailable, "STORE_UNAVAILABLE")
	})
	if _, err := s.Alter(t.Context(), "a", segment.Change{MaxID: &five}); !errors.Is(err, errAway) {
		t.Errorf("the stock was not dropped: %v", err)
	}
	f.set(says(nil, refuses(connect.CodeNotFound, "UNKNOWN_TAG")))
	if _, err := s.Alter(t.Context(), "a", segment.Change{MaxID: &five}); !errors.Is(err, leaf.ErrUnknownTag) || len(f.calls()) != 1 {
		t.Errorf("an unknown tag: %v after %d calls", err, len(f.calls()))
	}
}

// A listing has all pages, ends with the caller, and with the first error.
func TestTagPages(t *testing.T) {
	f := startFake(t, func(_ string, body []byte) (proto.Message, error) {
		req := new(leafv1.ListTagsRequest)
		if err := proto.Unmarshal(body, req); err != nil {
			return nil, err
		}
		next := map[string]string{"": "b", "b": "c", "c": ""}[req.GetPageToken()]
		return &leafv1.ListTagsResponse{Tags: []*leafv1.Tag{{Name: "1" + next}, {Name: "2" + next}}, NextPageToken: next}, nil
	})
	s := Store{openTo(t, Options{}, f)}
	var names strings.Builder
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names.WriteString(tag.Name + " ")
	}
	if want := "1b 2b 1c 2c 1 2 "; names.String() != want {
		t.Errorf("got %q, want %q", names.String(), want)
	}
	n := 0
	s.Tags(t.Context())(func(segment.Tag, error) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("%d tags to a caller that wants three", n)
	}
	f.set(says(nil, refuses(connect.CodeUnavailable, "STORE_UNAVAILABLE")))
	n = 0
	for _, err := range s.Tags(t.Context()) {
		if n++; !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
	}
	if n != 1 || len(f.calls()) != 1 {
		t.Errorf("%d rows of a failed listing, from %d calls", n, len(f.calls()))
	}
}

// Observe tells each server, adds up the dropped IDs, and names the unreachable servers. It
// stops at a refusal.
func TestObserveTellsAll(t *testing.T) {
	answer := func(maxID, dropped, below int64, long time.Duration) func(string, []byte) (proto.Message, error) {
		return says(&leafv1.ObserveTagResponse{Tag: &leafv1.Tag{Name: "a", MaxId: maxID}, Dropped: dropped, OthersBelow: &below, OthersFor: durationpb.New(long)}, nil)
	}
	one, two, three := startFake(t, nil), startFake(t, nil), startFake(t, nil)
	c := openTo(t, Options{}, one, two, three)
	one.set(answer(5, 3, 9, time.Second))
	two.set(answer(7, 4, 8, time.Minute))
	three.set(answer(6, 5, 2, time.Second))
	want := Observed{segment.Tag{Name: "a", MaxID: 7}, 12, 9, time.Minute}
	if got, err := c.Observe(t.Context(), "a", 4); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	two.set(says(nil, refuses(connect.CodeUnavailable, "STORE_UNAVAILABLE")))
	want = Observed{segment.Tag{Name: "a", MaxID: 6}, 8, 9, time.Second}
	if got, err := c.Observe(t.Context(), "a", 4); !errors.Is(err, errAway) || !reflect.DeepEqual(got, want) || len(three.calls()) != 2 {
		t.Errorf("one away: got %+v, %v", got, err)
	}
	two.set(says(nil, refuses(connect.CodePermissionDenied, "FORBIDDEN")))
	if _, err := c.Observe(t.Context(), "a", 4); !errors.Is(err, ErrDenied) || len(three.calls()) != 2 {
		t.Errorf("denied: %v, and %d calls of the next", err, len(three.calls()))
	}
}

// A frozen server leaves time for the others.
func TestObserveBesideAFrozenServer(t *testing.T) {
	frozen := make(chan struct{})
	one := startFake(t, func(string, []byte) (proto.Message, error) { <-frozen; return &leafv1.ObserveTagResponse{}, nil })
	two := startFake(t, says(&leafv1.ObserveTagResponse{Tag: &leafv1.Tag{Name: "a", MaxId: 5}}, nil))
	defer close(frozen)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if got, err := openTo(t, Options{}, one, two).Observe(ctx, "a", 4); !errors.Is(err, errAway) || got.Tag.MaxID != 5 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A version that a server gave goes with the next call for the tag, and with no other one.
func TestVersionsGoWithTheirTag(t *testing.T) {
	f := startFake(t, nil)
	s := Store{openTo(t, Options{}, f)}
	for _, step := range []struct{ tag, before, version string }{{"a", "", "1"}, {"b", "", "2"}, {"a", "1", ""}, {"a", "1", "3"}, {"a", "3", "4"}, {"b", "2", "5"}} {
		if f.set(says(&leafv1.AdvanceResponse{Version: step.version}, nil)); step.version == "" {
			f.set(says(nil, refuses(connect.CodeUnavailable, "STORE_UNAVAILABLE")))
		}
		_, err := s.Advance(t.Context(), step.tag, 1)
		req := new(leafv1.AdvanceRequest)
		if e := proto.Unmarshal(f.calls()[0].body, req); e != nil || (err == nil) != (step.version != "") || req.GetBefore() != step.before {
			t.Errorf("%+v: %v, %v", step, req, err)
		}
	}
}

// A record that no registry can have is refused without a call, in either place of a swap.
func TestBadRecords(t *testing.T) {
	f := startFake(t, says(&leafv1.SwapResponse{}, nil))
	r := Registry{openTo(t, Options{}, f)}
	bad := worker.Record{Worker: 3, Term: 1, Horizon: time.UnixMilli(-5)}
	for _, pair := range [][2]worker.Record{{bad, {Worker: 3}}, {{Worker: 3}, bad}} {
		if got, err := r.Swap(t.Context(), pair[0], pair[1]); err == nil || !got.IsZero() || len(f.calls()) > 0 {
			t.Errorf("%v: %v, %v", pair, got, err)
		}
	}
	if _, err := RecordMessage(bad); err == nil {
		t.Error("a message for a record with a negative horizon")
	}
}

// A mask comes back with its fingerprint; anything else than the value is another one.
func TestFingerprintOfAMask(t *testing.T) {
	want := segment.TagOptions{segment.OptionMask: "k1:10^9", segment.OptionOrder: "strict"}
	for have, ok := range map[string]bool{"k1:10^9:0123456789ab": true, "k1:10^9": true, "k1:10^99": false, "": false} {
		err := CheckOptions(want, &leafv1.Tag{Options: map[string]string{segment.OptionMask: have, segment.OptionOrder: "strict"}})
		if (err == nil) != ok {
			t.Errorf("%q: %v", have, err)
		}
	}
	if err := CheckOptions(want, &leafv1.Tag{Options: map[string]string{segment.OptionMask: "k1:10^9", segment.OptionOrder: "strict:x"}}); err == nil {
		t.Error("another option has more behind a colon")
	}
}
