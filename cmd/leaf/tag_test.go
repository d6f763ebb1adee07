package main

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/segment"
)

// A trying store is one where something is the matter with some tags.
type trying struct {
	*kv.Store
	broken string        // this tag cannot be changed
	moves  string        // this one's counter is moved far after it was listed
	alias  string        // this one has the counter of the tag a
	hidden string        // this one's periods cannot be listed
	begin  []segment.Tag // the initial tags
}

var errBroken = errors.New("the row is locked")

func (s *trying) counter(name string) string {
	if name == s.alias {
		return "a"
	}
	return name
}

func (s *trying) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	if name == s.broken {
		return segment.Tag{}, errBroken
	}
	if name == s.moves {
		if _, err := s.Store.Advance(ctx, name, 5000); err != nil {
			return segment.Tag{}, err
		}
	}
	return s.Store.Alter(ctx, s.counter(name), change)
}

func (s *trying) Periods(ctx context.Context, name string) ([]segment.Period, error) {
	if name == s.hidden {
		return nil, errBroken
	}
	return s.Store.Periods(ctx, name)
}

func (s *trying) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		found := make(map[string]segment.Tag)
		for tag, err := range s.Store.Tags(ctx) {
			if err != nil {
				yield(segment.Tag{}, err)
				return
			}
			found[tag.Name] = tag
		}
		for _, tag := range s.begin {
			if !yield(segment.Tag{Name: tag.Name, Options: tag.Options, MaxID: found[s.counter(tag.Name)].MaxID}, nil) {
				return
			}
		}
	}
}

func TestRaiseAll(t *testing.T) {
	three := []segment.Tag{{Name: "a", MaxID: 1}, {Name: "b", MaxID: 50}, {Name: "c", MaxID: 900}}
	yearly := segment.TagOptions{segment.OptionPeriod: "year"}
	tests := []struct {
		name   string
		store  trying
		dryRun bool
		stdout string
		err    string // its beginning
		want   map[string]int64
	}{
		{name: "all well",
			stdout: "raised a: max_id 1 → 1001\nraised b: max_id 50 → 1050\nraised c: max_id 900 → 1900\n",
			want:   map[string]int64{"a": 1001, "b": 1050, "c": 1900}},
		{name: "dry run", dryRun: true,
			stdout: "would raise a: max_id 1 → 1001\nwould raise b: max_id 50 → 1050\nwould raise c: max_id 900 → 1900\n",
			want:   map[string]int64{"a": 1, "b": 50, "c": 900}},
		{name: "one fails", store: trying{broken: "b"},
			stdout: "raised a: max_id 1 → 1001\nraised c: max_id 900 → 1900\n",
			err:    "1 of 3 tags were not raised:\nb: the row is locked",
			want:   map[string]int64{"a": 1001, "b": 50, "c": 1900}},
		{name: "a server moves one meanwhile", store: trying{moves: "b"},
			stdout: "raised a: max_id 1 → 1001\nraised b: max_id 50 → 6050\nraised c: max_id 900 → 1900\n",
			want:   map[string]int64{"a": 1001, "b": 6050, "c": 1900}},
		{name: "two tags share a counter", store: trying{alias: "b"},
			stdout: "raised a: max_id 1 → 1001\nraised b: max_id 1 → 1001\nraised c: max_id 900 → 1900\n",
			want:   map[string]int64{"a": 1001, "b": 1001, "c": 1900}},
		{name: "the periods of one are unknown", store: trying{hidden: "a", begin: []segment.Tag{{Name: "a", Options: yearly}, {Name: "b", Options: yearly}}},
			stdout: "raised b: max_id 0 → 1000\n",
			err:    "1 of 2 tags were not raised:\na: the row is locked",
			want:   map[string]int64{"a": 0, "b": 1000}},
		{name: "no room for one", store: trying{begin: []segment.Tag{{Name: "a", MaxID: 1}, {Name: "z", MaxID: math.MaxInt64 - 999}}},
			err:  "nothing was raised: the largest ID is 9223372036854775807, and 1 of 2 tags would pass it:\nz: max_id 9223372036854774808",
			want: map[string]int64{"a": 1, "z": math.MaxInt64 - 999}},
		{name: "just room", store: trying{begin: []segment.Tag{{Name: "z", MaxID: math.MaxInt64 - 1000}}},
			stdout: "raised z: max_id 9223372036854774807 → 9223372036854775807\n",
			want:   map[string]int64{"z": math.MaxInt64}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &test.store
			s.Store = memory.New().Store()
			if s.begin == nil {
				s.begin = three
			}
			for _, tag := range s.begin {
				tag.Step = 1
				if err := s.Create(t.Context(), tag); err != nil {
					t.Fatal(err)
				}
			}
			admin := adminOf(s)
			stdout, err := runRaiseAll(t, admin, test.dryRun)
			if diff := cmp.Diff(test.stdout, stdout); diff != "" {
				t.Errorf("output: %s", diff)
			}
			if (err != nil) != (test.err != "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Errorf("error: %v, want %s", err, test.err)
			}
			if err != nil && !isHinted(err) {
				t.Errorf("%v says nothing of what to do", err)
			}
			got := make(map[string]int64)
			for tag := range s.Tags(t.Context()) {
				got[tag.Name] = tag.MaxID
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("counters: %s", diff)
			}
		})
	}
}

// Cut off anywhere and run again, each counter has been raised at least once.
func TestRaiseAllAgain(t *testing.T) {
	s := &trying{Store: memory.New().Store(), broken: "b", begin: []segment.Tag{{Name: "a", MaxID: 1, Step: 1}, {Name: "b", MaxID: 1, Step: 1}}}
	for _, tag := range s.begin {
		if err := s.Create(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	admin := adminOf(s)
	if _, err := runRaiseAll(t, admin, false); !errors.Is(err, errBroken) {
		t.Fatalf("the first run: %v, want %v", err, errBroken)
	}
	s.broken = ""
	stdout, err := runRaiseAll(t, admin, false)
	if want := "raised a: max_id 1001 → 2001\nraised b: max_id 1 → 1001\n"; stdout != want || err != nil {
		t.Errorf("the second run: %v\n%swant\n%s", err, stdout, want)
	}
}

// adminOf acts on a store itself.
func adminOf(store segment.Store) *admin {
	a := &admin{flag: storeFlag(), url: "sqlite:x", calls: rpcapi.NewAdmin(&frontend.Options{Tags: issuer.NewTags(store, nil, nil)})}
	a.Timeout = time.Minute
	a.Explain = func(err error, took time.Duration) error { return a.flag.explainCall(err, a.url, took) }
	return a
}

// runRaiseAll raises all tags by 1000.
func runRaiseAll(t *testing.T, a *admin, dryRun bool) (stdout string, err error) {
	t.Helper()
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	cmd.SetOut(&out)
	err = a.raiseAll(cmd, 1000, dryRun)
	return out.String(), err
}
