package health_test

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var (
	now     = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	errDown = &leaf.StoreError{Err: errors.New("connection refused")}
)

// tag returns the state of a tag; a failing time above 0 makes it fail since then.
func tag(stock int64, rate float64, lasts, failing time.Duration) segment.Stats {
	st := segment.Stats{Tag: fmt.Sprint("t", stock), Loaded: true, Stock: stock, Rate: rate, Lasts: lasts}
	if failing > 0 {
		st.Err, st.FailingSince = errDown, now.Add(-failing)
	}
	return st
}

func seq(tags ...segment.Stats) iter.Seq[segment.Stats] { return slices.Values(tags) }

// fill adds what follows from the tags.
func fill(f *health.StoreFacts) {
	f.Schemes = []string{"segment"}
	if f.Tags == nil {
		f.Tags = seq()
	}
	var failing []segment.Stats
	for t := range f.Tags {
		f.InUse = true
		if t.Err != nil {
			failing = append(failing, t)
		}
	}
	f.Failing = slices.Values(failing)
}

func lease(s worker.Status, err error) *health.LeaseFacts {
	return &health.LeaseFacts{Schemes: []string{"snowflake"}, Held: true, Status: s, Err: err}
}

func TestJudge(t *testing.T) {
	const minute = time.Minute
	held := worker.Status{Held: true, Worker: 3, Horizon: now.Add(30 * minute)}
	with := func(err error, left time.Duration) worker.Status {
		s := held
		s.Err, s.Horizon = err, now.Add(left)
		return s
	}
	full, low, empty := tag(1000, 10, 100*time.Second, minute), tag(50, 10, 5*time.Second, minute), tag(0, 0, 0, minute)
	fine := tag(1000, 10, 100*time.Second, 0)
	tests := []struct {
		name  string
		store *health.StoreFacts
		lease *health.LeaseFacts
		want  string // conditions; ! marks Down
		ready string // ready schemes; - means the whole server
	}{
		{"all well", &health.StoreFacts{Answered: true, Tags: seq(fine)}, lease(held, nil), "", "- segment snowflake"},
		{"store silent", &health.StoreFacts{}, lease(held, nil), "!store_silent", "snowflake"},
		{"store unfit", &health.StoreFacts{Answered: true, Err: leaf.ErrUnsupported, Unfit: leaf.ErrUnsupported}, lease(held, nil), "!store_unfit", "snowflake"},
		{"store failing, enough left", &health.StoreFacts{Answered: true, Tags: seq(full)}, nil, "store_failing", "- segment"},
		{"a tag has enough, another has not", &health.StoreFacts{Answered: true, Tags: seq(full, low, empty)}, nil, "store_failing", "- segment"},
		{"not enough of any", &health.StoreFacts{Answered: true, Tags: seq(low, empty)}, nil, "!store_failing", ""},
		{"an untouched tag fails", &health.StoreFacts{Answered: true, Tags: seq(empty)}, nil, "!store_failing", ""},
		{"fails for a moment", &health.StoreFacts{Answered: true, Tags: seq(tag(0, 0, 0, time.Millisecond))}, nil, "", "- segment"},
		{"no tag is asked for", &health.StoreFacts{Answered: true, Err: errDown}, lease(held, nil), "store_failing", "- segment snowflake"},
		{"the listing fails, tags empty", &health.StoreFacts{Answered: true, Err: errDown, Tags: seq(tag(0, 5, 0, 0))}, nil, "!store_failing", ""},
		{"idle stock lasts", &health.StoreFacts{Answered: true, Err: errDown, Tags: seq(tag(1, 0, 0, minute))}, nil, "store_failing", "- segment"},
		{"a damaged tag", &health.StoreFacts{Answered: true, Tags: seq(segment.Stats{Tag: "x", Err: leaf.ErrOverflow, FailingSince: now.Add(-minute)})}, nil,
			"tag_failing", "- segment"},
		{"counters out, times go on", &health.StoreFacts{Answered: true, Tags: seq(empty)},
			&health.LeaseFacts{Schemes: []string{"snowflake"}, InUse: []string{"snowflake"}, Held: true, Status: held}, "!store_failing", "- snowflake"},
		{"counters out, times not asked for", &health.StoreFacts{Answered: true, Tags: seq(empty)}, lease(held, nil), "!store_failing", "snowflake"},
		{"no lease yet", nil, &health.LeaseFacts{Schemes: []string{"snowflake"}, Err: errDown}, "!no_worker_id", ""},
		{"no registry asked for", &health.StoreFacts{Answered: true},
			&health.LeaseFacts{Schemes: []string{"snowflake"}, Err: worker.ErrNotCreated, Optional: true}, "!no_worker_id", "- segment"},
		{"no registry asked for, and the database away", &health.StoreFacts{Answered: true, Tags: seq(full)},
			&health.LeaseFacts{Schemes: []string{"snowflake"}, Err: errDown, Optional: true}, "!no_worker_id store_failing", "- segment"},
		{"lease lost to another", &health.StoreFacts{Answered: true, Tags: seq(fine)}, lease(worker.Status{}, worker.ErrTaken), "!no_worker_id", "segment"},
		{"lease ran out, registry away", &health.StoreFacts{Answered: true, Tags: seq(fine)}, lease(worker.Status{}, errDown), "!no_worker_id", "- segment"},
		{"registry away", nil, lease(with(errDown, minute), nil), "registry_failing", "- snowflake"},
		{"registry away, lease ends", nil, &health.LeaseFacts{Schemes: []string{"snowflake"}, InUse: []string{"snowflake"}, Held: true,
			Status: with(errDown, 9*time.Second)}, "!no_worker_id", ""},
		{"clock off", nil, lease(with(worker.ErrClockOff, 30*minute), nil), "clock_off", "- snowflake"},
		{"no start with that clock", nil, &health.LeaseFacts{Schemes: []string{"snowflake"}, Err: worker.ErrClockOff}, "!clock_off", ""},
		{"state file", nil, lease(with(&fs.PathError{Op: "write", Path: "worker", Err: fs.ErrPermission}, 30*minute), nil), "!state_file", ""},
		{"clock stepped", nil, lease(worker.Status{Held: true, ClockStep: -3 * time.Second}, nil), "clock_stepped", "- snowflake"},
		{"layout ends", nil, &health.LeaseFacts{Schemes: []string{"snowflake"}, Layouts: map[string]time.Time{"old": now.AddDate(0, 11, 0), "new": now.AddDate(2, 0, 0)}},
			"layout_ending", "- snowflake"},
		{"starts used up", nil, &health.LeaseFacts{Schemes: []string{"uid"}, Supply: worker.Supply{Used: 95, Max: 100}}, "worker_ids_low", "- uid"},
	}
	for _, tt := range tests {
		if tt.store != nil {
			fill(tt.store)
		}
		r := health.Judge(health.Facts{Now: now, Least: 10 * time.Second, Store: tt.store, Lease: tt.lease})
		if got := names(r); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if diff := cmp.Diff(tt.ready, ready(r, tt.store, tt.lease)); diff != "" {
			t.Errorf("%s: ready (-want +got):\n%s", tt.name, diff)
		}
		r = health.Judge(health.Facts{Now: now, Stopping: true, Store: tt.store, Lease: tt.lease})
		if got := ready(r, tt.store, tt.lease); got != "" {
			t.Errorf("%s: ready while stopping: %s", tt.name, got)
		}
	}
}

func names(r health.Report) string {
	var list []string
	for _, c := range r.Conditions {
		if c.Down {
			c.Name = "!" + c.Name
		}
		list = append(list, c.Name)
	}
	return strings.Join(list, " ")
}

func ready(r health.Report, store *health.StoreFacts, lease *health.LeaseFacts) string {
	var list []string
	if r.Err("") == nil {
		list = append(list, "-")
	}
	if store != nil && r.Err("segment") == nil {
		list = append(list, "segment")
	}
	if lease != nil && r.Err(lease.Schemes[0]) == nil {
		list = append(list, lease.Schemes[0])
	}
	return strings.Join(list, " ")
}

// The text of an outage names the tags at risk and marks the store's own words.
func TestOutageText(t *testing.T) {
	store := &health.StoreFacts{Answered: true, Tags: seq(tag(1000, 10, 100*time.Second, time.Minute), tag(0, 5, 0, time.Minute))}
	fill(store)
	r := health.Judge(health.Facts{Now: now, Least: 10 * time.Second, Store: store})
	want := "the store is unavailable since 2026-05-04T03:01:01Z; of 2 tags in use 1 have IDs for less than 10s, the others for 1m40s or more: connection refused"
	if got := r.Conditions[0].Err.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, ok := errors.AsType[*leaf.StoreError](r.Conditions[0].Err); !ok {
		t.Error("the store's words are not marked")
	}
}

// A broken table breaks all of its tags: the report names the first few.
func TestManyDamagedTags(t *testing.T) {
	var tags []segment.Stats
	for i := range 10_000 {
		tags = append(tags, segment.Stats{Tag: fmt.Sprintf("t%04d", (i*7)%10_000), Err: leaf.ErrUnsupported, FailingSince: now.Add(-time.Minute)})
	}
	store := &health.StoreFacts{Answered: true, Tags: seq(tags...)}
	fill(store)
	all := health.Judge(health.Facts{Now: now, Store: store}).Conditions
	if len(all) != 21 {
		t.Fatalf("%d conditions", len(all))
	}
	first, last := all[0].Err.Error(), all[20].Err.Error()
	if !strings.HasPrefix(first, "tag t0000, ") || last != "and 9980 other tags" {
		t.Errorf("from %q to %q", first, last)
	}
}

// A server may have very many tags: without an outage it reads the failing ones only.
func TestTagsThatAreWellAreNotLookedAt(t *testing.T) {
	damaged := segment.Stats{Tag: "x", Err: leaf.ErrOverflow, FailingSince: now.Add(-time.Minute)}
	r := health.Judge(health.Facts{Now: now, Store: &health.StoreFacts{
		Answered: true, InUse: true, Failing: seq(damaged), Tags: func(func(segment.Stats) bool) { t.Error("all tags are looked at") },
	}})
	if got := names(r); got != health.TagFailing {
		t.Errorf("%s, want %s", got, health.TagFailing)
	}
}
