package issuer_test

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
	"github.com/leaf-id/leaf/internal/issuer"
)

func nextUUID(t testing.TB, key string) string {
	t.Helper()
	id, err := issuer.UUIDs{}.Next(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return id.Text
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

func textsOf(ids issuer.IDs) (texts []string) {
	for id := range ids.All() {
		texts = append(texts, id.Text)
	}
	return texts
}

// A batch takes no memory before it is read.
func TestUUIDsAreMadeWhenRead(t *testing.T) {
	var ids issuer.IDs
	if n := testing.AllocsPerRun(10, func() { ids, _ = issuer.UUIDs{}.Take(t.Context(), "v4", 10_000) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
	if n := len(textsOf(ids)); n != 10_000 {
		t.Errorf("%d UUIDs", n)
	}
}

func TestUUIDForm(t *testing.T) {
	forms := map[string]*regexp.Regexp{
		"v4": regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
		"v7": regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`),
	}
	for key, form := range forms {
		ids, err := issuer.UUIDs{}.Take(t.Context(), key, 10_000)
		texts := textsOf(ids)
		if err != nil || len(texts) != 10_000 {
			t.Fatalf("%s: %d, %v", key, len(texts), err)
		}
		for _, id := range texts {
			if !form.MatchString(id) {
				t.Fatalf("%s: %q", key, id)
			}
		}
	}
}

func TestUUIDTime(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	id := nextUUID(t, "")
	// Other tests of the package may have moved the time ahead.
	if at := timeOf(t, id); at.Before(before) || at.After(time.Now().Add(10*time.Second)) {
		t.Errorf("%s holds the time %v, want about %v", id, at, before)
	}
}

// batch is what each goroutine of the tests of uniqueness makes.
const batch = 300_000

func TestUUIDsUniqueAndAscending(t *testing.T) {
	for _, key := range []string{"v4", "v7"} {
		const goroutines = 4
		made := make([][]string, goroutines)
		var wg sync.WaitGroup
		for i := range made {
			wg.Go(func() {
				ids, err := issuer.UUIDs{}.Take(t.Context(), key, batch)
				if err != nil {
					t.Error(err)
				}
				made[i] = textsOf(ids)
			})
		}
		wg.Wait()
		for i, ids := range made {
			if ordered := slices.IsSorted(ids); ordered != (key == "v7") {
				t.Errorf("%s, goroutine %d: in order: %v", key, i, ordered)
			}
		}
		all := slices.Concat(made...)
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != goroutines*batch {
			t.Errorf("%s: %d of %d differ", key, n, goroutines*batch)
		}
	}
}

// What one goroutine makes after another is greater.
func TestUUIDsAscendingAcrossGoroutines(t *testing.T) {
	var mu sync.Mutex
	last := ""
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20_000 {
				mu.Lock()
				id, err := issuer.UUIDs{}.Next(t.Context(), "order")
				if err != nil || id.Text <= last {
					t.Errorf("%s after %s, %v", id.Text, last, err)
				}
				last = id.Text
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// Within a bubble it is the year 2000: the clock goes back by decades, and afterwards
// forward again.
func TestUUIDClockSetBack(t *testing.T) {
	last := nextUUID(t, "v7")
	ascend := func(t *testing.T) {
		for range 10_000 { // more than a millisecond holds
			id := nextUUID(t, "v7")
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

func TestUUIDNoRandomNumbers(t *testing.T) {
	uuid.SetRand(io.LimitReader(bytes.NewReader(make([]byte, 1<<10)), 40))
	defer uuid.SetRand(nil)
	ids, err := issuer.UUIDs{}.Take(t.Context(), "v4", 10)
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, io.ErrUnexpectedEOF) || made != 2 {
			t.Errorf("%v after %d UUIDs", err, made)
		}
	}()
	for range ids.All() {
		made++
	}
}

func TestUUIDVersions(t *testing.T) {
	for key, want := range map[string]byte{"v4": '4', "v7": '7', "order": '7', "": '7', "V4": '7', "v9": '7', "v10": '7', "v1": 0, "v5": 0, "v8": 0} {
		id, err := issuer.UUIDs{}.Next(t.Context(), key)
		if want == 0 && !errors.Is(err, leaf.ErrInvalid) || want != 0 && (err != nil || id.Text[14] != want) {
			t.Errorf("key %q: %v, %v; want version %c", key, id, err, want)
		}
		if check := (issuer.UUIDs{}).Check(t.Context(), key); (check == nil) != (err == nil) {
			t.Errorf("key %q: Check: %v", key, check)
		}
	}
}

// Through an Issuer they are bound as all others.
func TestUUIDThroughIssuer(t *testing.T) {
	ids, _ := newIssuer()
	got, err := ids.Take(t.Context(), "uuid", "v4", 50)
	if err != nil || got.Texts.Len() != 50 {
		t.Errorf("%v, %v", got, err)
	}
	for key, n := range map[string]int{"v4": 51, "v7": 0, "v1": 1} {
		if got, err := ids.Take(t.Context(), "uuid", key, n); !errors.Is(err, leaf.ErrInvalid) || got.Texts.Len() > 0 {
			t.Errorf("%d of %q: %v, %v", n, key, got, err)
		}
	}
	for _, key := range []string{"", "a\x00"} {
		if err := ids.Check("uuid", key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func BenchmarkUUID(b *testing.B) {
	for _, key := range []string{"v4", "v7"} {
		b.Run(key, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := (issuer.UUIDs{}).Next(b.Context(), key); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
