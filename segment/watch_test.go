package segment_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// A set that begins without its store checks it after pauses that double up to a second.
func TestChecksBeforeTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		store.Set(drivertest.Fault{Before: errDown})
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		time.Sleep(time.Minute)
		if n := store.Calls(drivertest.OpTags); n < 60 || n > 75 {
			t.Errorf("%d checks in a minute", n)
		}
		store.Set(drivertest.Fault{})
		time.Sleep(time.Second + time.Millisecond)
		select {
		case <-set.Ready():
		default:
			t.Error("a store that answers was not noticed within a second")
		}
	})
}

// A store that fails later is checked after five seconds, an unfit one after a second, and each more
// often if all checks are.
func TestChecksOfAFailingStore(t *testing.T) {
	unfit := fmt.Errorf("%w: its data is of a newer release", leaf.ErrUnsupported)
	for _, c := range []struct {
		err            error
		interval, want time.Duration
	}{
		{errDown, time.Minute, 5 * time.Second}, {errDown, 3 * time.Second, 3 * time.Second}, {unfit, time.Minute, time.Second}, {unfit, time.Second / 2, time.Second / 2},
		{nil, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 10)
			set := segment.NewSet(store, &segment.SetOptions{CheckInterval: c.interval})
			defer set.Close(t.Context())
			<-set.Ready()
			store.Set(drivertest.Fault{Before: c.err})
			time.Sleep(c.interval + 1) // the first check that fails
			before := store.Calls(drivertest.OpTags)
			const checks = 10
			time.Sleep(checks * c.want)
			if n := store.Calls(drivertest.OpTags) - before; n != checks {
				t.Errorf("%v, each %v: %d checks in %v", c.err, c.interval, n, checks*c.want)
			}
		})
	}
}

// A recreated tag has IDs, however many other tags the listing has: tags without a grant do not
// replace it.
func TestRemovedTagComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		create(t, store, "idle", 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second, Options: segment.Options{CallTimeout: time.Hour}})
		defer set.Close(t.Context())
		<-set.Ready()
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		store.Plan(func(c drivertest.Call) drivertest.Fault {
			return drivertest.Fault{Mute: c.Tag == "idle"}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := set.Next(ctx, "idle") // a call for it stays in flight
		wantError(t, err, context.DeadlineExceeded)
		if err := store.Delete(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		_, err = set.Next(t.Context(), "order")
		wantError(t, err, leaf.ErrUnknownTag)
		create(t, store, "order", 500, 10)
		time.Sleep(2 * time.Second)
		if id, err := set.Next(t.Context(), "order"); err != nil || id != 500 {
			t.Errorf("created again: %d, %v", id, err)
		}
	})
}

// A set keeps a bounded part of a listing: names, then hashes from the second listing on, and the
// wanted names always. If it keeps all names and hashes, it knows that no other tag exists.
func TestListingIsBounded(t *testing.T) {
	for _, c := range []struct {
		limits      [2]int
		first, next [2]int
		whole       [2]bool
	}{
		{[2]int{3, 4}, [2]int{3, 0}, [2]int{3, 4}, [2]bool{false, false}},
		{[2]int{3, 7}, [2]int{3, 0}, [2]int{3, 7}, [2]bool{false, true}},
		{[2]int{10, 1}, [2]int{10, 0}, [2]int{10, 0}, [2]bool{true, true}},
	} {
		segment.LimitListed(t, c.limits[0], c.limits[1])
		synctest.Test(t, func(t *testing.T) {
			store := newStore(t, 1, 10)
			for i := range 9 {
				create(t, store, fmt.Sprint("tag-", i), 1, 10)
			}
			set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second})
			defer set.Close(t.Context())
			<-set.Ready()
			for i, want := range [][2]int{c.first, c.next} {
				if names, hashes, whole := set.Kept(); names != want[0] || hashes != want[1] || whole != c.whole[i] {
					t.Errorf("limits %v, listing %d: %d names, %d hashes, whole: %v", c.limits, i+1, names, hashes, whole)
				}
				time.Sleep(1100 * time.Millisecond)
			}
		})
	}
}

// A set with a part of the tags lists them again for a caller who wants another one, although their
// digest is the same, and not without such a caller. The hash of a tag tells nothing of its form.
func TestDigestOfAPart(t *testing.T) {
	for _, hashes := range []int{0, 10} {
		segment.LimitListed(t, 2, hashes)
		t.Run(fmt.Sprint(hashes, " hashes"), digestOfAPart)
	}
}

func digestOfAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &digesting{Faulty: newStore(t, 1, 10)}
		for i := range 3 {
			tag := segment.Tag{Name: fmt.Sprint("tag-", i), MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionForm: "T{n}"}}
			if err := store.Create(t.Context(), tag); err != nil {
				t.Fatal(err)
			}
		}
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second})
		defer set.Close(t.Context())
		time.Sleep(3500 * time.Millisecond)
		before := store.listings.Load()
		time.Sleep(time.Minute)
		if n := store.listings.Load() - before; n != 0 {
			t.Errorf("%d listings of the same tags", n)
		}
		for i := range 3 {
			if form, err := set.Form(t.Context(), fmt.Sprint("tag-", i)); err != nil || form.String() != "T{n}" {
				t.Errorf("the form of tag %d: %v, %v", i, form, err)
			}
		}
		if store.listings.Load() == before {
			t.Error("no listing had the other tags")
		}
		_, err := set.Form(t.Context(), "none")
		wantError(t, err, leaf.ErrUnknownTag)
	})
}

// A check for a waiting caller begins at once if the last one was long ago. If the store does not
// answer, callers do not wait for a check.
func TestFormOfANewTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour})
		defer set.Close(t.Context())
		<-set.Ready()
		time.Sleep(10 * time.Minute)
		if err := store.Create(t.Context(), segment.Tag{Name: "late", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionForm: "L{n}"}}); err != nil {
			t.Fatal(err)
		}
		form := func(tag string, want error) {
			t.Helper()
			begin := time.Now()
			if _, err := set.Form(t.Context(), tag); !errors.Is(err, want) || time.Since(begin) > 0 {
				t.Errorf("%s: %v after %v", tag, err, time.Since(begin))
			}
		}
		form("late", nil)
		form("", leaf.ErrInvalid)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := set.Form(ctx, "another"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: %v", err)
		}
		store.Set(drivertest.Fault{Before: errDown})
		time.Sleep(2 * time.Hour)
		form("none", leaf.ErrExhausted)
		form("late", nil) // as of the last listing
	})
}

// A caller waits for the form of a tag as long as for an ID.
func TestFormOfASlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour})
		defer set.Close(t.Context())
		<-set.Ready()
		time.Sleep(time.Minute)
		store.Set(drivertest.Fault{Latency: time.Minute})
		begin := time.Now()
		if _, err := set.Form(t.Context(), "none"); !errors.Is(err, leaf.ErrExhausted) || time.Since(begin) != segment.DefaultWait {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		late := segment.NewSet(store, nil) // without a listing yet
		defer late.Close(t.Context())
		_, err := late.Form(t.Context(), "order")
		wantError(t, err, leaf.ErrExhausted)
	})
}

// A change of a tag's form has the store listed at once, any other change does not.
func TestChangedForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour})
		defer set.Close(t.Context())
		<-set.Ready()
		for want, o := range map[int]segment.TagOptions{0: {segment.OptionDescription: "x"}, 1: {segment.OptionForm: "O{n}"}} {
			before := store.Calls(drivertest.OpTags)
			set.Server().Changed(segment.Tag{Name: "order", Step: 10, Options: o})
			synctest.Wait()
			if n := store.Calls(drivertest.OpTags) - before; n != want {
				t.Errorf("%v: %d listings", o, n)
			}
		}
	})
}

// A brief store lists names and steps for less, and its descriptions cost more.
type brief struct {
	*drivertest.Faulty
	t *testing.T
}

func (s brief) Steps(ctx context.Context) iter.Seq2[segment.Tag, error] { return s.Faulty.Tags(ctx) }

func (s brief) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	s.t.Error("the set lists more than it needs")
	return s.Faulty.Tags(ctx)
}

// A set lists no more than names and steps where the store can.
func TestBriefListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := brief{newStore(t, 1, 10), t}
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second})
		defer set.Close(t.Context())
		time.Sleep(3 * time.Second)
		if !set.Server().Has("order") || set.Server().Has("none") {
			t.Error("the listing was not taken up")
		}
	})
}

// An undigested store cannot tell for less whether its tags are the same.
type undigested struct{ digesting }

func (*undigested) Digest(context.Context) (string, error) { return "x", errDown }

// A set lists the tags where their digest is not to be had.
func TestNoDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &undigested{digesting{Faulty: newStore(t, 1, 10)}}
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second})
		defer set.Close(t.Context())
		time.Sleep(10*time.Second + 1)
		if n := store.listings.Load(); n != 11 {
			t.Errorf("%d listings in ten seconds", n)
		}
	})
}

// A listing that breaks off behind all tags in use is good enough: they are there.
func TestListingBreaksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &breaking{Faulty: newStore(t, 1, 10)}
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Second})
		defer set.Close(t.Context())
		<-set.Ready()
		store.breaks.Store(true)
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if err := set.Server().StoreErr(); err != nil {
			t.Error(err)
		}
		store.without.Store(true)
		time.Sleep(5 * time.Second)
		if err := set.Server().StoreErr(); !errors.Is(err, errDown) {
			t.Errorf("a listing without a tag in use: %v", err)
		}
		if _, err := set.Next(t.Context(), "order"); err != nil {
			t.Error(err)
		}
	})
}

// A breaking store may list its tags, and then fails.
type breaking struct {
	*drivertest.Faulty
	breaks, without atomic.Bool
}

func (s *breaking) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		if !s.without.Load() {
			for tag, err := range s.Faulty.Tags(ctx) {
				if !yield(tag, err) {
					return
				}
			}
		}
		if s.breaks.Load() {
			yield(segment.Tag{}, errDown)
		}
	}
}

// The log tells that a store answers again, if it told that it failed.
func TestRecoveryIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := newStore(t, 1, 10)
		set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour, Options: segment.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		defer set.Close(t.Context())
		<-set.Ready()
		use := func(n int) error { _, err := set.Take(t.Context(), "order", nil, n); return err }
		wantError(t, use(1), nil)
		synctest.Wait()
		if strings.Contains(log.String(), "again") {
			t.Errorf("before a failure:\n%s", log.String())
		}
		for round := 1; round <= 2; round++ {
			store.Set(drivertest.Fault{Before: errDown})
			st, _ := set.Server().Of("order")
			wantError(t, use(int(st.Stock)), nil)
			wantError(t, use(1), errDown)
			store.Set(drivertest.Fault{})
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if n := strings.Count(log.String(), "store answers again"); n != round {
				t.Errorf("%d lines after %d failures:\n%s", n, round, log.String())
			}
		}
	})
}

// Totals has the figures of each tag without its segments, to callers who read on or stop.
func TestTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t, 1, 10)
		create(t, store, "other", 1, 10)
		set := segment.NewSet(store, nil)
		defer set.Close(t.Context())
		for i, tag := range []string{"order", "other"} {
			if _, err := set.Take(t.Context(), tag, nil, i+1); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		issued := map[string]int64{}
		for st := range set.Server().Totals() {
			if issued[st.Tag] = st.Issued; len(st.Segments) != 0 || st.Stock == 0 || !st.Loaded {
				t.Errorf("got %+v", st)
			}
		}
		if len(issued) != 2 || issued["order"] != 1 || issued["other"] != 2 {
			t.Errorf("got %v", issued)
		}
		store.Set(drivertest.Fault{Before: errDown})
		for _, tag := range []string{"order", "other"} {
			_, err := set.Take(t.Context(), tag, nil, 1000)
			wantError(t, err, errDown)
		}
		for name, all := range map[string]iter.Seq[segment.Stats]{"totals": set.Server().Totals(), "failing": set.Server().Failing()} {
			n := 0
			all(func(segment.Stats) bool { n++; return false })
			if n != 1 {
				t.Errorf("%s: %d to a caller who stops at the first one", name, n)
			}
		}
	})
}

// The set knows its store after the first grant, or from its memory.
func TestStoreIDOfASet(t *testing.T) {
	memory := notes{}
	for _, want := range []string{"", "A"} {
		synctest.Test(t, func(t *testing.T) {
			store := &identified{Faulty: newStore(t, 1, 10), identity: "A"}
			set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Memory: memory}})
			defer set.Close(t.Context())
			if id := set.StoreID(); id != want {
				t.Errorf("before a grant: %q", id)
			}
			if _, err := set.Next(t.Context(), "order"); err != nil && want == "" {
				t.Fatal(err)
			}
			if id := set.StoreID(); id != "A" {
				t.Errorf("after a grant: %q", id)
			}
		})
	}
}
