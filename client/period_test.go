package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

// TestPeriods takes numbers of one tag through the client and its calls without a stock, at a server
// and at a relay behind it: each has the period in its answer, and they share its counter.
func TestPeriods(t *testing.T) {
	store := memory.New().Store()
	tag := segment.Tag{Name: "receipt", MaxID: 1, Step: 1000, Options: segment.TagOptions{segment.OptionPeriod: "month", segment.OptionZone: "Asia/Tokyo"}}
	if err := store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	server := testleaf.Start(t, testleaf.Options{Store: store})
	upstream, err := relay.Open([]string{server.URL()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	edge := testleaf.Start(t, testleaf.Options{Store: upstream.Store()})
	month := func() string {
		present, err := tag.Options.PeriodOf("", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return present
	}
	want := map[string]int64{} // the next number of a period
	check := func(what, period string, start, n int64) {
		t.Helper()
		if start != want[period]+1 {
			t.Errorf("%s: got %d from %d of %s, want it from %d", what, n, start, period, want[period]+1)
		}
		want[period] += n
	}
	for _, s := range []*testleaf.Server{server, edge} {
		c := connect(t, nil, s)
		for _, period := range []string{"", "2024-02-01"} {
			for _, n := range []int{1, 5} {
				before := month()
				a, err := c.Issue(t.Context(), client.Request{Key: "receipt", Period: period, Count: n})
				if err != nil || len(a.Ranges) != 1 || a.Ranges[0].Len() != int64(n) || a.Period != period && period+a.Period != before && period+a.Period != month() {
					t.Fatalf("%q: got %+v, %v", period, a, err)
				}
				check("Issue", a.Period, a.Ranges[0].Start, int64(n))
			}
		}
		id, err := c.Next(t.Context(), "receipt") // the number alone
		if err != nil {
			t.Fatal(err)
		}
		check("Next", month(), id, 1)
		for _, bad := range []client.Request{{Key: "receipt", Period: "2024-02-02", Count: 1}, {Key: "receipt", Count: 0},
			{Scheme: "snowflake", Period: "2024-02-01", Count: 1}} {
			if a, err := c.Issue(t.Context(), bad); !errors.Is(err, leaf.ErrInvalid) && !errors.Is(err, leaf.ErrUnsupported) {
				t.Errorf("%+v: got %+v, %v", bad, a, err)
			}
		}
	}
	old, err := relay.Open([]string{edge.URL()}, nil) // a program that knows nothing of periods
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	if _, err := old.Store().Advance(t.Context(), "receipt", 10); !errors.Is(err, segment.ErrPeriodic) {
		t.Errorf("a stock: %v", err)
	}
	all, err := old.Store().Periods(t.Context(), "receipt")
	if err != nil || len(all) != len(want) || all[0] != (segment.Period{Name: "2024-02-01", MaxID: want["2024-02-01"] + 1}) {
		t.Errorf("periods: %v, %v", all, err)
	}
	if err := old.Store().RemovePeriod(t.Context(), "receipt", "2024-02-01"); err != nil {
		t.Error(err)
	}
	if err := old.Store().RemovePeriod(context.Background(), "receipt", month()); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("the present period: %v", err)
	}
	if a, err := connect(t, nil, edge).Issue(t.Context(), client.Request{Key: "receipt", Period: "2024-02-01", Count: 1}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a removed period: %+v, %v", a, err)
	}
}
