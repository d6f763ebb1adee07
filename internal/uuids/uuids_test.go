package uuids_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/uuids"
)

func generator(t testing.TB, version int) *uuids.Generator {
	t.Helper()
	g, err := uuids.New(version)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next(t testing.TB, g *uuids.Generator) string {
	t.Helper()
	id, err := g.Next()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// timeOf is the time in a UUID of version 7.
func timeOf(t testing.TB, id string) time.Time {
	t.Helper()
	u, err := uuid.Parse(id)
	if err != nil {
		t.Fatal(err)
	}
	var ms int64
	for _, b := range u[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms)
}

func TestForm(t *testing.T) {
	forms := map[int]*regexp.Regexp{
		uuids.V4: regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
		uuids.V7: regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
	}
	for version, form := range forms {
		ids, err := generator(t, version).Append(nil, 10_000)
		if err != nil || len(ids) != 10_000 {
			t.Fatalf("version %d: %d, %v", version, len(ids), err)
		}
		for _, id := range ids {
			if !form.MatchString(id) || len(id) != uuids.TextLength {
				t.Fatalf("version %d: %q", version, id)
			}
		}
	}
}

func TestTime(t *testing.T) {
	g := generator(t, uuids.V7)
	before := time.Now().Truncate(time.Millisecond)
	id := next(t, g)
	// The tests beside this one may have run the time ahead by what they asked for.
	if at := timeOf(t, id); at.Before(before) || at.After(time.Now().Add(10*time.Second)) {
		t.Errorf("%s holds the time %v, want about %v", id, at, before)
	}
}

// batch is what each goroutine of the tests of uniqueness makes.
const batch = 300_000

func TestUniqueAndAscending(t *testing.T) {
	for _, version := range []int{uuids.V4, uuids.V7} {
		const goroutines = 4
		made := make([][]uuid.UUID, goroutines)
		var wg sync.WaitGroup
		for i := range made {
			g := generator(t, version)
			wg.Go(func() { made[i] = makeMany(t, g) })
		}
		wg.Wait()
		for i, ids := range made {
			if ordered := slices.IsSortedFunc(ids, compare); ordered != (version == uuids.V7) {
				t.Errorf("version %d, goroutine %d: in order: %v", version, i, ordered)
			}
		}
		all := slices.Concat(made...)
		slices.SortFunc(all, compare)
		if n := len(slices.Compact(all)); n != goroutines*batch {
			t.Errorf("version %d: %d of %d differ", version, n, goroutines*batch)
		}
	}
}

func compare(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

func makeMany(t *testing.T, g *uuids.Generator) []uuid.UUID {
	ids := make([]uuid.UUID, 0, batch)
	last := ""
	for range batch {
		id, err := g.Next()
		if err != nil {
			t.Error(err)
			return nil
		}
		u, err := uuid.Parse(id)
		if err != nil {
			t.Error(err)
			return nil
		}
		if ascending := id > last; u.Version() == 7 && !ascending {
			t.Errorf("%s after %s", id, last)
			return nil
		}
		last = id
		ids = append(ids, u)
	}
	return ids
}

// What one goroutine makes after another is greater, also from another generator.
func TestAscendingAcrossGoroutines(t *testing.T) {
	var mu sync.Mutex
	last := ""
	var wg sync.WaitGroup
	for range 8 {
		g := generator(t, uuids.V7)
		wg.Go(func() {
			for range 20_000 {
				mu.Lock()
				id, err := g.Next()
				if err != nil || id <= last {
					t.Errorf("%s after %s, %v", id, last, err)
				}
				last = id
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// Within a bubble it is the year 2000: the clock goes back by decades, and afterwards
// forward again.
func TestClockSetBack(t *testing.T) {
	g := generator(t, uuids.V7)
	last := next(t, g)
	ascend := func(t *testing.T) {
		for range 10_000 { // more than a millisecond holds
			id := next(t, g)
			if id <= last {
				t.Fatalf("%s after %s", id, last)
			}
			last = id
		}
	}
	before := timeOf(t, last)
	synctest.Test(t, func(t *testing.T) {
		if time.Now().Year() > 2001 {
			t.Fatal("the clock was not set back")
		}
		ascend(t)
		time.Sleep(time.Hour) // forward, and still behind
		ascend(t)
		time.Sleep(-time.Hour)
		ascend(t)
	})
	if ahead := timeOf(t, last).Sub(before); ahead < 0 || ahead > time.Second {
		t.Errorf("30,000 UUIDs of a stopped clock moved the time by %v", ahead)
	}
	ascend(t)
}

func TestAppend(t *testing.T) {
	g := generator(t, uuids.V7)
	ids, err := g.Append([]string{"before"}, 3)
	if err != nil || len(ids) != 4 || ids[0] != "before" || !slices.IsSorted(ids[1:]) {
		t.Errorf("%q, %v", ids, err)
	}
	if ids, err := g.Append(nil, 0); err != nil || len(ids) != 0 {
		t.Errorf("none: %q, %v", ids, err)
	}
	for _, n := range []int{-1, uuids.MaxBatch + 1} {
		if ids, err := g.Append(nil, n); !errors.Is(err, leaf.ErrInvalid) || ids != nil {
			t.Errorf("n = %d: %d, %v", n, len(ids), err)
		}
	}
}

func TestNoRandomNumbers(t *testing.T) {
	uuid.SetRand(io.LimitReader(bytes.NewReader(make([]byte, 1<<10)), 40))
	defer uuid.SetRand(nil)
	ids, err := generator(t, uuids.V4).Append([]string{"before"}, 10)
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(ids) != 1 {
		t.Errorf("%q, %v", ids, err)
	}
}

func TestVersions(t *testing.T) {
	for _, version := range []int{-1, 0, 1, 5, 6, 8} {
		if _, err := uuids.New(version); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("version %d: %v", version, err)
		}
	}
	for key, want := range map[string]int{"v4": 4, "v7": 7, "order": 7, "": 7, "V4": 7, "v9": 7, "v10": 7, "v1": 0, "v5": 0, "v8": 0} {
		got, err := uuids.Version(key)
		if got != want || errors.Is(err, leaf.ErrInvalid) != (want == 0) {
			t.Errorf("key %q: version %d, %v; want %d", key, got, err, want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, version := range map[string]int{"v4": uuids.V4, "v7": uuids.V7} {
		g := generator(b, version)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := g.Next(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
