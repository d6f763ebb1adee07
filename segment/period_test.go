package segment_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

func periodic(name, kind, zone string) segment.Tag {
	return segment.Tag{Name: name, MaxID: 1, Step: 1000, Options: segment.TagOptions{segment.OptionPeriod: kind, segment.OptionZone: zone}}
}

func TestPeriodOptions(t *testing.T) {
	for _, o := range []segment.TagOptions{
		{"period": "day"}, {"period": "week", "zone": "Asia/Shanghai"}, {"period": "fiscal:04-06", "zone": "Europe/London"}, {"period": "fiscal:12-28"},
	} {
		if err := o.Check(); err != nil {
			t.Error(o, err)
		}
	}
	for _, o := range []segment.TagOptions{
		{"period": "hour"}, {"period": "fiscal:02-29"}, {"period": "fiscal:13-01"}, {"period": "fiscal:4-1"}, {"zone": "UTC"},
		{"period": "day", "zone": "Mars/Olympus"}, {"period": "day", "zone": "Local"}, {"period": "day", "order": "strict"},
	} {
		if err := o.Check(); !errors.Is(err, leaf.ErrInvalid) {
			t.Error(o, err)
		}
	}
}

// The expected days were computed by hand, with a calendar.
func TestPeriodOf(t *testing.T) {
	for _, c := range []struct{ kind, zone, at, want string }{
		{"day", "", "2024-02-29T23:59:59.999Z", "2024-02-29"},
		{"day", "", "2024-03-01T00:00:00Z", "2024-03-01"},
		{"day", "", "2023-02-28T23:59:59Z", "2023-02-28"},
		{"day", "Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-28"}, // the day of 23 hours begins
		{"day", "Europe/Berlin", "2026-03-28T23:00:00Z", "2026-03-29"},
		{"day", "Europe/Berlin", "2026-03-29T21:59:59Z", "2026-03-29"},
		{"day", "Europe/Berlin", "2026-03-29T22:00:00Z", "2026-03-30"},
		{"day", "Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-25"}, // of 25 hours
		{"day", "Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-26"},
		{"day", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29"}, // Samoa left the 30th out
		{"day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31"},
		{"day", "America/St_Johns", "2010-11-07T02:30:30Z", "2010-11-07"}, // one minute after midnight …
		{"day", "America/St_Johns", "2010-11-07T02:31:30Z", "2010-11-06"}, // … clocks went back an hour
		{"day", "Asia/Kathmandu", "2026-11-23T18:15:00Z", "2026-11-24"},
		{"week", "", "2026-11-22T23:59:59Z", "2026-11-16"}, // a Sunday
		{"week", "", "2026-11-23T00:00:00Z", "2026-11-23"},
		{"week", "Asia/Shanghai", "2024-12-31T12:00:00Z", "2024-12-30"},
		{"month", "Asia/Shanghai", "2024-02-29T15:59:59Z", "2024-02-01"},
		{"month", "Asia/Shanghai", "2024-02-29T16:00:00Z", "2024-03-01"},
		{"year", "America/Los_Angeles", "2027-01-01T07:59:59Z", "2026-01-01"},
		{"year", "America/Los_Angeles", "2027-01-01T08:00:00Z", "2027-01-01"},
		{"fiscal:04-06", "Europe/London", "2026-04-05T22:59:59Z", "2025-04-06"},
		{"fiscal:04-06", "Europe/London", "2026-04-05T23:00:00Z", "2026-04-06"},
		{"fiscal:10-01", "", "2026-12-31T00:00:00Z", "2026-10-01"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		o := periodic("", c.kind, c.zone).Options
		if got, err := o.PeriodOf("", at); err != nil || got != c.want {
			t.Errorf("%s in %s at %s: got %s, %v, want %s", c.kind, c.zone, c.at, got, err, c.want)
		}
		if got, err := o.PeriodOf(c.want, at); err != nil || got != c.want {
			t.Errorf("%s by name: %v", c.want, err)
		}
	}
}

func TestPeriodNames(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for kind, names := range map[string][]string{
		"day":          {"2023-02-29", "1999-12-31", "2026-11-25", "2026-1-1", "today", "2026-11-23 ", "20261123"},
		"week":         {"2026-11-24", "2026-12-07"},
		"month":        {"2026-11-02", "2027-01-01", "2026-11"},
		"fiscal:04-06": {"2026-01-01", "2028-04-06"},
	} {
		for _, name := range names {
			if _, err := periodic("", kind, "UTC").Options.PeriodOf(name, now); !errors.Is(err, leaf.ErrInvalid) {
				t.Errorf("%s: %q is accepted: %v", kind, name, err)
			}
		}
	}
	for kind, name := range map[string]string{"day": "2026-11-24", "week": "2026-11-30", "month": "2026-12-01", "year": "2027-01-01", "fiscal:04-06": "2027-04-06"} {
		o := periodic("", kind, "UTC").Options
		if _, err := o.PeriodOf(name, now); err != nil {
			t.Errorf("the next %s is refused: %v", kind, err)
		}
		if err := o.CheckRemoval(name, now); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("the next %s can be removed: %v", kind, err)
		}
	}
	o := periodic("", "day", "UTC").Options
	midnight := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	if err := o.CheckRemoval("2026-11-22", midnight.Add(59*time.Minute)); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a period that has just ended: %v", err)
	}
	if err := o.CheckRemoval("2026-11-22", midnight.Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

// TestTenYearsOfPeriods lets ten years of virtual time pass over two servers of a store, with calls
// around each hour at which a day may begin. Each answer names the period of a moment of its call,
// the numbers of a period have neither a gap nor a duplicate, and every period of the calendar
// occurs. Without the lab it is one year, and in short mode its first hundred days, when clocks change
// both in the north and in the south.
func TestTenYearsOfPeriods(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe", "America/Santiago", "Africa/Casablanca",
		"Pacific/Apia", "Asia/Kathmandu"}
	synctest.Test(t, func(t *testing.T) { // time begins on 1 January 2000
		store := memory.New().Store()
		for i, zone := range zones {
			kind := []string{"day", "day", "day", "day", "week", "month", "year", "fiscal:04-06"}[i]
			if err := store.Create(t.Context(), periodic(zone, kind, zone)); err != nil {
				t.Fatal(err)
			}
		}
		sets := []*segment.Set{segment.NewSet(store, &segment.SetOptions{CheckInterval: 1000 * time.Hour}),
			segment.NewSet(store, &segment.SetOptions{CheckInterval: 1000 * time.Hour})}
		next := make(map[string]map[string]int64) // by tag and period
		calls, days := 0, make(map[string]map[string]bool)
		empty := ""
		end := time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
		if os.Getenv("LEAF_LAB") == "" { // LEAF_LAB=1 go test -run TenYears ./segment takes them all
			end = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
		}
		if testing.Short() {
			end = time.Date(2000, 4, 10, 0, 0, 0, 0, time.UTC)
		}
		random := rand.New(rand.NewPCG(1, 2))
		for time.Now().Before(end) {
			// Days begin at full, half and quarter hours, and at a minute past midnight.
			quarter := 15 * time.Minute
			at := time.Now().Truncate(quarter).Add(time.Duration(random.IntN(12)+1) * quarter)
			time.Sleep(time.Until(at.Add([]time.Duration{-1, 0, 1, time.Minute, time.Minute - 1}[random.IntN(5)])))
			for _, zone := range zones {
				where, err := time.LoadLocation(zone)
				if err != nil {
					t.Fatal(err)
				}
				before := time.Now().In(where)
				n := int64(random.IntN(3) + 1)
				g, err := sets[random.IntN(2)].Server().AdvanceStrict(t.Context(), zone, &empty, false, n)
				if err != nil {
					t.Fatal(err)
				}
				if days[zone] == nil {
					days[zone], next[zone] = make(map[string]bool), make(map[string]int64)
				}
				days[zone][before.Format(time.DateOnly)] = true
				if want := max(next[zone][g.Period], 1); g.Range != (leaf.Range{Start: want, End: want + n}) {
					t.Fatalf("%s at %v: got %v of %s, want %d from %d", zone, before, g.Range, g.Period, n, want)
				}
				next[zone][g.Period] = g.Range.End
				if calls++; zones[0] == zone && g.Period != before.Format(time.DateOnly) {
					t.Fatalf("%s at %v: got the period %s", zone, before, g.Period)
				}
			}
		}
		for _, zone := range zones[:4] { // with a day each
			if len(next[zone]) != len(days[zone]) {
				t.Errorf("%s: %d periods in %d days", zone, len(next[zone]), len(days[zone]))
			}
			for day := range days[zone] {
				if next[zone][day] == 0 {
					t.Errorf("%s: no number of the day %s", zone, day)
				}
			}
		}
		t.Logf("%d calls; periods: %s", calls, fmt.Sprint(len(next[zones[0]]), len(next[zones[2]]), len(next[zones[4]]), len(next[zones[5]]), len(next[zones[6]]), len(next[zones[7]])))
		for _, set := range sets {
			if err := set.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Callers who name different periods never share a call to the store, and all of them are served.
func TestPeriodsInOneQueue(t *testing.T) {
	store := memory.New().Store()
	if err := store.Create(t.Context(), periodic("invoice", "day", "UTC")); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Wait: time.Minute}})
	defer set.Close(t.Context())
	var mu sync.Mutex
	sum := make(map[string]int64)
	var wg sync.WaitGroup
	for i := range 60 {
		period := fmt.Sprintf("2025-01-0%d", i%3+1)
		wg.Go(func() {
			g, err := set.Server().AdvanceStrict(t.Context(), "invoice", &period, false, 2)
			if err != nil || g.Period != period || g.Range.Len() != 2 {
				t.Errorf("%s: got %+v, %v", period, g, err)
			}
			mu.Lock()
			defer mu.Unlock()
			sum[g.Period] += g.Range.Start
		})
	}
	wg.Wait()
	for period, got := range sum {
		if got != 20*20 { // 1, 3, … 39
			t.Errorf("%s: the starts add up to %d", period, got)
		}
	}
	bad := "2025-02-30"
	if _, err := set.Server().AdvanceStrict(t.Context(), "invoice", &bad, false, 1); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a bad name: %v", err)
	}
	if _, err := set.Server().AdvanceStrict(t.Context(), "invoice", nil, false, 1); !errors.Is(err, segment.ErrPeriodic) {
		t.Errorf("a caller without periods: %v", err)
	}
	if _, err := set.Server().Advance(t.Context(), "invoice", 1, ""); !errors.Is(err, segment.ErrPeriodic) {
		t.Errorf("a stock: %v", err)
	}
	if id, err := set.Next(t.Context(), "invoice"); err != nil || id != 1 {
		t.Errorf("today: got %d, %v", id, err)
	}
}
