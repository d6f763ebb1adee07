package issuer_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// A recorder replaces the generators.
type recorder struct {
	forgotten []string
	known     int64
	busy      time.Duration // how long Forget waits for calls in flight
}

func (r *recorder) Forget(tag string, change func() error) error {
	time.Sleep(r.busy)
	err := change()
	if err == nil {
		r.forgotten = append(r.forgotten, tag)
	}
	return err
}

func (r *recorder) Changed(segment.Tag)           {}
func (r *recorder) DropBelow(string, int64) int64 { return 0 }
func (r *recorder) Known(string) int64            { return r.known }
func (r *recorder) StoreID() string               { return "" }
func (r *recorder) Ready() <-chan struct{}        { return nil }
func (r *recorder) Stats() []segment.Stats        { return nil }
func (r *recorder) Failing() iter.Seq[segment.Stats] {
	return func(func(segment.Stats) bool) {}
}

type fixture struct {
	*issuer.Tags
	store    *kv.Store
	segments *recorder
	log      *bytes.Buffer
}

func newFixture(t *testing.T) fixture {
	f := fixture{store: memory.New().Store(), segments: new(recorder), log: new(bytes.Buffer)}
	f.Tags = issuer.NewTags(f.store, f.segments, slog.New(slog.NewTextHandler(f.log, nil)))
	if err := f.store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1000, Step: 10, Options: segment.Describe("d")}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) list(t *testing.T) []segment.Tag {
	var tags []segment.Tag
	for tag, err := range f.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		tags = append(tags, tag)
	}
	return tags
}

var ignoreUpdated = cmpopts.IgnoreFields(segment.Tag{}, "Updated")

func TestAlter(t *testing.T) {
	order := segment.Tag{Name: "order", MaxID: 1000, Step: 10, Options: segment.Describe("d")}
	with := func(edit func(*segment.Tag)) segment.Tag { tag := order; edit(&tag); return tag }
	tests := []struct {
		name   string
		tag    string
		change issuer.Change
		want   segment.Tag // the tag afterwards
		err    error
		forget bool
	}{
		{name: "step", change: issuer.Change{Change: segment.Change{Step: new(int64(20))}},
			want: with(func(t *segment.Tag) { t.Step = 20 })},
		{name: "description to nothing", change: issuer.Change{Change: segment.Change{Options: segment.TagOptions{"description": ""}}},
			want: with(func(t *segment.Tag) { t.Options = nil })},
		{name: "unknown option", change: issuer.Change{Change: segment.Change{Options: segment.TagOptions{"newer": "x"}}},
			want: order, err: leaf.ErrUnsupported},
		{name: "lift", change: issuer.Change{Change: segment.Change{MaxID: new(int64(5000))}},
			want: with(func(t *segment.Tag) { t.MaxID = 5000 })},
		{name: "lower", change: issuer.Change{Change: segment.Change{MaxID: new(int64(5))}}, want: order, err: leaf.ErrRegression},
		{name: "lower by force", change: issuer.Change{Change: segment.Change{MaxID: new(int64(5)), Force: true}},
			want: with(func(t *segment.Tag) { t.MaxID = 5 }), forget: true},
		{name: "raise", change: issuer.Change{RaiseBy: new(int64(7))},
			want: with(func(t *segment.Tag) { t.MaxID = 1007 })},
		{name: "raise and step", change: issuer.Change{Change: segment.Change{Step: new(int64(3))}, RaiseBy: new(int64(7))},
			want: with(func(t *segment.Tag) { t.MaxID, t.Step = 1007, 3 })},
		{name: "raise past the end", change: issuer.Change{RaiseBy: new(int64(1<<63 - 1))}, want: order, err: leaf.ErrOverflow},
		{name: "raise by nothing", change: issuer.Change{RaiseBy: new(int64(0))}, want: order, err: leaf.ErrInvalid},
		{name: "raise downwards", change: issuer.Change{RaiseBy: new(int64(-7))}, want: order, err: leaf.ErrInvalid},
		{name: "raise and set", change: issuer.Change{Change: segment.Change{MaxID: new(int64(5000))}, RaiseBy: new(int64(7))},
			want: order, err: leaf.ErrInvalid},
		{name: "nothing", want: order, err: leaf.ErrInvalid},
		{name: "step 0", change: issuer.Change{Change: segment.Change{Step: new(int64(0))}}, want: order, err: leaf.ErrInvalid},
		{name: "unknown", tag: "nope", change: issuer.Change{RaiseBy: new(int64(7))}, want: order, err: leaf.ErrUnknownTag},
		{name: "bad name", tag: "\x00", change: issuer.Change{RaiseBy: new(int64(7))}, want: order, err: leaf.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			name := "order"
			if tt.tag != "" {
				name = tt.tag
			}
			got, err := f.Alter(t.Context(), name, tt.change)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("Alter: %v, want %v", err, tt.err)
			}
			if err == nil {
				want := tt.want
				if tt.name == "raise" { // an allocation does not tell the description
					want.Options = nil
				}
				if diff := cmp.Diff(want, got, ignoreUpdated); diff != "" {
					t.Errorf("returned: %s", diff)
				}
			}
			if diff := cmp.Diff([]segment.Tag{tt.want}, f.list(t), ignoreUpdated); diff != "" {
				t.Errorf("stored: %s", diff)
			}
			if forgot := slices.Equal(f.segments.forgotten, []string{"order"}); forgot != tt.forget {
				t.Errorf("forgotten: %q, want it: %v", f.segments.forgotten, tt.forget)
			}
			if logged := f.log.Len() > 0; logged != (tt.err == nil) {
				t.Errorf("log: %q", f.log)
			}
		})
	}
}

func TestCreateAndDelete(t *testing.T) {
	f := newFixture(t)
	user := segment.Tag{Name: "user", MaxID: 1, Step: 5}
	if got, err := f.Create(t.Context(), user); err != nil || got.Name != "user" {
		t.Fatalf("Create: %v, %v", got, err)
	}
	if _, err := f.Create(t.Context(), user); !errors.Is(err, leaf.ErrTagExists) {
		t.Errorf("again: %v, want ErrTagExists", err)
	}
	if _, err := f.Create(t.Context(), segment.Tag{Name: "x"}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("step 0: %v, want ErrInvalid", err)
	}
	if err := f.Delete(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), "order"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("again: %v, want ErrUnknownTag", err)
	}
	if diff := cmp.Diff([]segment.Tag{user}, f.list(t), ignoreUpdated); diff != "" {
		t.Errorf("stored: %s", diff)
	}
	if diff := cmp.Diff([]string{"order"}, f.segments.forgotten); diff != "" {
		t.Errorf("forgotten: %s", diff)
	}
	if got := strings.Count(f.log.String(), "\n"); got != 2 {
		t.Errorf("%d lines logged, want one for each of 2 changes:\n%s", got, f.log)
	}
}

// A plain is a store that can only advance, and only in units of at most 4 IDs.
type plain struct{ store *kv.Store }

func (p plain) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return p.store.Advance(ctx, tag, min(n, 4))
}

func (p plain) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] { return p.store.Tags(ctx) }

func TestPlainStore(t *testing.T) {
	f := newFixture(t)
	tags := issuer.NewTags(plain{f.store}, nil, nil)
	if _, err := tags.Create(t.Context(), segment.Tag{Name: "user", Step: 1}); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("Create: %v, want ErrUnsupported", err)
	}
	if err := tags.Delete(t.Context(), "order"); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("Delete: %v, want ErrUnsupported", err)
	}
	got, err := tags.Alter(t.Context(), "order", issuer.Change{RaiseBy: new(int64(10))})
	if err != nil || got.MaxID != 1010 {
		t.Errorf("raise in units of 4: max_id %d, %v, want 1010", got.MaxID, err)
	}
}

// A single is a store of single tickets. Others draw meanwhile, if told to.
type single struct {
	*kv.Store
	others int64 // how many they draw before the next change
}

func (s *single) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.Store.Advance(ctx, tag, min(n, 1))
}

func (s *single) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	if change.MaxID != nil && s.others > 0 {
		if _, err := s.Store.Advance(ctx, name, s.others); err != nil {
			return segment.Tag{}, err
		}
		s.others = 0
	}
	return s.Store.Alter(ctx, name, change)
}

func (s *single) Lift(context.Context, string, string, int64) error {
	return errors.New("no server has answered yet")
}

// The time for a change begins once the calls in flight have ended.
func TestChangesAfterALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.segments.busy = time.Minute
		if _, err := f.Alter(t.Context(), "order", issuer.Change{Change: segment.Change{MaxID: new(int64(5)), Force: true}}); err != nil {
			t.Error(err)
		}
		if err := f.Delete(t.Context(), "order"); err != nil {
			t.Error(err)
		}
	})
}

// A billion tickets are not drawn one by one.
func TestRaiseTickets(t *testing.T) {
	const n = 1_000_000_000
	tests := []struct {
		name   string
		tag    string
		others int64
		n      int64
		want   int64 // the counter afterwards
		err    error
	}{
		{name: "alone", n: n, want: n + 1000},
		{name: "beside others", others: 7, n: n, want: n + 1000},
		{name: "overtaken", others: 7, n: 3, want: 1010},
		{name: "past the end", n: 1<<63 - 1, want: 1000, err: leaf.ErrOverflow},
		{name: "unknown", tag: "nope", n: n, want: 1000, err: leaf.ErrUnknownTag},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			tags := issuer.NewTags(&single{f.store, tt.others}, nil, nil)
			name := "order"
			if tt.tag != "" {
				name = tt.tag
			}
			got, err := tags.Alter(t.Context(), name, issuer.Change{RaiseBy: &tt.n})
			if !errors.Is(err, tt.err) || err == nil && got.MaxID != tt.want {
				t.Errorf("raised to %d, %v, want %d, %v", got.MaxID, err, tt.want, tt.err)
			}
			if stored := f.list(t)[0].MaxID; stored != tt.want {
				t.Errorf("the counter stands at %d, want %d", stored, tt.want)
			}
		})
	}
}

// The error reports the amount raised before a failure, and not the method.
func TestRaiseFails(t *testing.T) {
	f := newFixture(t)
	_, err := f.Alter(t.Context(), "nope", issuer.Change{RaiseBy: new(int64(3))})
	if want := `raise tag "nope": unknown tag`; err == nil || err.Error() != want {
		t.Errorf("unknown tag: %v, want %s", err, want)
	}
	if err := f.store.Create(t.Context(), segment.Tag{Name: "end", MaxID: 1<<63 - 6, Step: 1}); err != nil {
		t.Fatal(err)
	}
	_, err = issuer.NewTags(plain{f.store}, nil, nil).Alter(t.Context(), "end", issuer.Change{RaiseBy: new(int64(100))})
	if !errors.Is(err, leaf.ErrOverflow) || !strings.Contains(err.Error(), "raised by 4 of 100: ") {
		t.Errorf("overflow on the way: %v", err)
	}
}

// A tag of strict order is raised, too, unless the store knows no such order.
func TestRaiseOfStrictOrder(t *testing.T) {
	f := newFixture(t)
	strict := segment.Tag{Name: "strict", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	if err := f.store.Create(t.Context(), strict); err != nil {
		t.Fatal(err)
	}
	raise := issuer.Change{RaiseBy: new(int64(5))}
	if got, err := f.Alter(t.Context(), "strict", raise); err != nil || got.MaxID != 6 {
		t.Errorf("raised to %d, %v", got.MaxID, err)
	}
	if _, err := issuer.NewTags(plain{f.store}, nil, nil).Alter(t.Context(), "strict", raise); !errors.Is(err, segment.ErrStrict) {
		t.Errorf("without the call for it: %v", err)
	}
}

// A raise lifts every period above the highest one, and above the tag's own counter.
func TestRaiseOfPeriods(t *testing.T) {
	f := newFixture(t)
	periodic := segment.Tag{Name: "invoice", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionPeriod: "year"}}
	if err := f.store.Create(t.Context(), periodic); err != nil {
		t.Fatal(err)
	}
	grant := func(period string, n int64) leaf.Range {
		t.Helper()
		g, err := f.store.AdvanceStrict(t.Context(), "invoice", period, n)
		if err != nil {
			t.Fatal(err)
		}
		return g.Range
	}
	grant("2024-01-01", 5000)
	grant("2025-01-01", 300)
	for _, want := range []int64{7001, 9001} {
		if got, err := f.Alter(t.Context(), "invoice", issuer.Change{RaiseBy: new(int64(2000))}); err != nil || got.MaxID != want {
			t.Fatalf("raised to %d, %v, want %d", got.MaxID, err, want)
		}
	}
	for _, period := range []string{"2023-01-01", "2024-01-01", "2025-01-01"} {
		if got := grant(period, 1); got.Start != 9001 {
			t.Errorf("the period %s continues at %d, want 9001", period, got.Start)
		}
	}
	if _, err := f.Alter(t.Context(), "invoice", issuer.Change{RaiseBy: new(int64(math.MaxInt64 - 9001))}); !errors.Is(err, leaf.ErrOverflow) {
		t.Errorf("a raise that a period has no room for: %v", err)
	}
}

// A mute is a store that never answers.
type mute struct{ segment.Store }

func (mute) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		<-ctx.Done()
		yield(segment.Tag{}, ctx.Err())
	}
}

func TestProbe(t *testing.T) {
	if err := newFixture(t).Probe(t.Context()); err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := issuer.NewTags(mute{}, nil, nil).Probe(t.Context())
		if took := time.Since(start); took != 2*time.Second || err == nil || !strings.HasPrefix(err.Error(), "no answer within 2s") {
			t.Errorf("a store that never answers: %v after %v, want an error after 2s", err, took)
		}
	})
}
