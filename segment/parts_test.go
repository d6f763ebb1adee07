package segment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/mask"
)

// A grant contradicts the guard's knowledge if it begins below it, or if another server answers.
func TestContradicts(t *testing.T) {
	for _, c := range []struct {
		mark  Mark
		grant Grant
		want  bool
	}{
		{Mark{}, Grant{}, false}, {Mark{High: 5}, Grant{Range: leaf.Range{Start: 5, End: 6}}, false}, {Mark{High: 5}, Grant{Range: leaf.Range{Start: 4, End: 9}}, true},
		{Mark{Server: "a"}, Grant{Server: "a"}, false}, {Mark{Server: "a"}, Grant{Server: "b"}, true},
		{Mark{Server: "a"}, Grant{}, false}, {Mark{}, Grant{Server: "a"}, false},
	} {
		if got := c.mark.contradicts(c.grant); got != c.want {
			t.Errorf("%+v after %+v: %v", c.grant, c.mark, got)
		}
	}
	same := Grant{Source: "s", Server: "a"}
	for g, want := range map[[2]string]bool{{"s", "a"}: true, {"s", "b"}: false, {"r", "a"}: false} {
		if got := (&Grant{Source: g[0], Server: g[1]}).sameCounter(same); got != want {
			t.Errorf("%v is the same counter: %v", g, got)
		}
	}
}

// The default lift is a hundred times the largest step or grant seen so far.
func TestDefaultJumpFollowsGrants(t *testing.T) {
	const least = jumpSteps * 1_000_000
	for name, before := range map[string]Grant{
		"a step": {Range: leaf.Range{End: 1}, Step: 1_000_000}, "a grant": {Range: leaf.Range{End: 1_000_000}, Step: 1},
	} {
		b := NewBuffer(&lyingStore{}, "order", nil)
		if lift, err := b.guard.admit(before); lift != -1 || err != nil {
			t.Fatal(lift, err)
		}
		lift, err := b.guard.admit(Grant{Range: leaf.Range{Start: 0, End: 1}, Step: 1})
		if err != nil || lift < least || lift > 2*least+1_000_000 {
			t.Errorf("%s: lifts by %d, %v", name, lift, err)
		}
	}
}

// A buffer of an unknown tag is settled by a grant or by its end.
func TestConfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		grants int64
		end    error
		want   bool
	}{"neither": {0, nil, false}, "granted": {1, nil, true}, "ended": {0, errWaited, true}} {
		b := NewBuffer(&lyingStore{}, "order", nil)
		b.account.grants, b.end = c.grants, c.end
		if b.confirmed() != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// The failing buffers leave no memory behind.
func TestFailingBuffers(t *testing.T) {
	var f failing
	a, b := new(Buffer), new(Buffer)
	for _, step := range []struct {
		change func(*Buffer)
		of     *Buffer
		left   int
	}{{f.add, a, 1}, {f.add, a, 1}, {f.add, b, 2}, {f.remove, a, 1}, {f.remove, a, 1}, {f.remove, b, 0}} {
		step.change(step.of)
		if n := len(f.list()); n != step.left || f.none() != (n == 0) || (f.buffers == nil) != (n == 0) {
			t.Errorf("%d buffers, none: %v, want %d", n, f.none(), step.left)
		}
	}
}

// The error of a caller without an ID says why, and whether the store may still deliver.
func TestExhaustedErrors(t *testing.T) {
	b := NewBuffer(&lyingStore{}, "order", nil)
	down := errors.New("down")
	for name, c := range map[string]struct {
		cause  error
		is     []error
		waited bool // it may have IDs later
	}{
		"silence": {nil, nil, true}, "a failure": {down, []error{down}, true}, "the end": {leaf.ErrOverflow, []error{leaf.ErrOverflow}, false},
		"closed": {leaf.ErrClosed, []error{leaf.ErrClosed}, false},
	} {
		err := b.exhausted(c.cause)
		if errors.Is(err, leaf.ErrExhausted) != c.waited || !strings.Contains(err.Error(), `tag "order"`) || strings.Contains(err.Error(), "has not answered") != (c.cause == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.is {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v is not %v", name, err, want)
			}
		}
	}
}

// A block has its size, the default without one, and at most the loss budget.
func TestBlockSize(t *testing.T) {
	o := &Options{MaxStock: 100}
	for n, want := range map[int]int64{-1: DefaultBlock, 0: DefaultBlock, 1: 1, 99: 99, 100: 100, 101: 100} {
		if got := o.blockSize(n); got != want {
			t.Errorf("%d: %d", n, got)
		}
	}
}

// The log tells once that the loss budget is too small, and again after the use was well below it.
func TestBudgetsAreComparedOnce(t *testing.T) {
	var log strings.Builder
	b := NewBuffer(&lyingStore{}, "order", &Options{MaxStock: 1000, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, c := range []struct{ recent, lines int64 }{{900, 0}, {1000, 0}, {1001, 1}, {5000, 1}, {901, 1}, {1001, 1}, {900, 1}, {1000, 1}, {1001, 2}} {
		b.compareBudgets(c.recent)
		if n := strings.Count(log.String(), "max_stock keeps"); n != int(c.lines) {
			t.Errorf("%d recent: %d lines, want %d", c.recent, n, c.lines)
		}
	}
}

// A tag used long after its set was made has its own rate from the beginning.
func TestRateOfALateTag(t *testing.T) {
	shared := newShared(&lyingStore{}, nil, (*Options)(nil).withDefaults())
	shared.made = time.Now().Add(-time.Hour)
	b := newBuffer("order", shared)
	b.demand.record(b.account.lastAt.Sub(shared.made)+2*demandWindow, 1000)
	if rate := b.demand.window; rate < 4000 || rate > 6000 {
		t.Errorf("1000 IDs in 200 ms are %v a second", rate)
	}
}

// A server grants at most the requested count of hidden numbers, and each is one that a range can have.
func TestCheckMaskedGrant(t *testing.T) {
	for name, c := range map[string]struct {
		grant Grant
		ok    bool
	}{
		"good": {Grant{Masked: []int64{0, math.MaxInt64 - 1}}, true}, "one, at the end of a mask": {Grant{Masked: []int64{1}}, true}, "none": {Grant{Masked: []int64{}}, false}, "three": {Grant{Masked: []int64{1, 2, 3}}, false},
		"plain ones, too": {Grant{Masked: []int64{1, 2}, Range: leaf.Range{End: 1}}, false}, "negative": {Grant{Masked: []int64{1, -1}}, false},
		"the largest": {Grant{Masked: []int64{math.MaxInt64, 1}}, false}, "plain ones": {Grant{Range: leaf.Range{End: 2}}, false},
	} {
		if err := c.grant.checkMasked(2); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := Grant{Masked: []int64{5, 3, 9}, Step: 7}
	first, second := split(&g, 1), split(&g, 2)
	if !slices.Equal(first.Masked, []int64{5}) || !slices.Equal(second.Masked, []int64{3, 9}) || len(g.Masked) != 0 || second.Step != 7 || cap(first.Masked) != 1 {
		t.Errorf("split into %+v and %+v, with %+v left", first, second, g)
	}
	if first.Len() != 1 || second.Len() != 2 || (Grant{Range: leaf.Range{Start: 3, End: 8}}).Len() != 5 {
		t.Error("wrong lengths")
	}
}

// A process opens a mask with the key that the tag needs, and no other.
func TestOpenMask(t *testing.T) {
	key := mask.Key{1}
	keys := MaskKeys{"k1": key}
	for option, want := range map[string]error{
		"k1:10^9:" + key.Fingerprint(): nil, "k1:10^9:0123456789ab": ErrMaskKey, "k2:10^9:" + key.Fingerprint(): ErrMaskKey,
		"k1:10^9": ErrMaskKey, "of a newer release": leaf.ErrUnsupported,
	} {
		m, err := keys.open("order", option)
		if !errors.Is(err, want) || (m == nil) != (want != nil) || want == leaf.ErrUnsupported && errors.Is(err, ErrMaskKey) {
			t.Errorf("%s: %v, %v", option, m, err)
		}
	}
	if o, err := keys.Complete(TagOptions{OptionMask: "k1"}); o != nil || !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a mask without a domain: %v, %v", o, err)
	}
	if err := checkMask("k1:10^x"); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a mask without a domain: %v", err)
	}
	for name, ok := range map[string]bool{
		"k1": true, "A.b_c-9": true, strings.Repeat("k", 32): true, strings.Repeat("k", 33): false, "": false, "a:b": false, ".a": false, "k 1": false, "k1:53": false,
	} {
		if err := CheckMaskKeyName(name); (err == nil) != ok || err != nil && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A deleted tag leaves its name to another one that gives no number twice.
func TestCheckNewName(t *testing.T) {
	for _, c := range []struct {
		o     TagOptions
		maxID int64
		ok    bool
	}{{nil, 0, true}, {nil, math.MaxInt64 - 1, true}, {nil, math.MaxInt64, false}, {TagOptions{OptionMask: "k1:53"}, 0, false}} {
		if err := c.o.CheckNewName(c.maxID); (err == nil) != c.ok || err != nil && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%v after %d: %v", c.o, c.maxID, err)
		}
	}
}

// A store grants the numbers of a tag only to the kind of call that the tag's options ask for.
func TestCheckCalls(t *testing.T) {
	masked, periodic, strict := TagOptions{OptionMask: "k1:53"}, TagOptions{OptionPeriod: "day"}, TagOptions{OptionOrder: OrderStrict}
	for _, c := range []struct {
		o      TagOptions
		masked bool
		want   error
	}{
		{masked, true, nil}, {masked, false, ErrMasked}, {periodic, true, leaf.ErrUnknownTag}, {periodic, false, nil},
		{strict, true, leaf.ErrUnknownTag}, {nil, true, leaf.ErrUnknownTag},
	} {
		for _, lossy := range []bool{false, true} {
			if err := c.o.CheckStrict(lossy, c.masked); !errors.Is(err, c.want) {
				t.Errorf("%v, masked %v: %v", c.o, c.masked, err)
			}
		}
	}
	for _, c := range []struct {
		o    TagOptions
		want error
	}{{nil, nil}, {strict, ErrStrict}, {periodic, ErrPeriodic}, {masked, ErrMasked}} {
		if err := c.o.Stockless(); !errors.Is(err, c.want) || c.want != nil && !errors.Is(err, ErrStrict) {
			t.Errorf("%v: %v", c.o, err)
		}
	}
	if errors.Is(ErrPeriodic, ErrMasked) || errors.Is(ErrMasked, ErrPeriodic) || errors.Is(ErrStrict, ErrPeriodic) || errors.Is(ErrPeriodic, errWaited) {
		t.Error("the refusals are taken for one another")
	}
	for name, err := range map[string]error{"removed": ErrPeriodRemoved("2026-01-01"), "without numbers": ErrNoPeriod("2026-01-01")} {
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), "2026-01-01") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only tags with periods take their names, and only machines with a zone know it.
func TestPeriodsOfOtherTags(t *testing.T) {
	now := time.Now()
	if name, err := (TagOptions{}).PeriodOf("", now); name != "" || err != nil {
		t.Errorf("no period: %q, %v", name, err)
	}
	if name, err := (TagOptions{}).PeriodOf("2026-01-01", now); name != "" || !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a period of a tag without: %q, %v", name, err)
	}
	for day, want := range map[string]error{"2000-01-01": nil, "1999-12-31": leaf.ErrInvalid} {
		if name, err := (TagOptions{OptionPeriod: "day"}).PeriodOf(day, now); !errors.Is(err, want) || want == nil && name != day {
			t.Errorf("%s: %q, %v", day, name, err)
		}
	}
	odd := TagOptions{OptionPeriod: "day", OptionZone: "Mars/Olympus"}
	if name, err := odd.PeriodOf("", now); name != "" || !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("an unknown zone: %q, %v", name, err)
	}
	for o, want := range map[*TagOptions]error{{}: leaf.ErrInvalid, &odd: leaf.ErrUnsupported} {
		if err := o.CheckRemoval("2020-01-01", now); !errors.Is(err, want) {
			t.Errorf("%v: %v", *o, err)
		}
	}
	for name, want := range map[string]bool{"2026-01-01": true, "2026-13-01": false, "": false, "a": false} {
		if isPeriod(name) != want {
			t.Errorf("%q is a period: %v", name, !want)
		}
	}
}

func TestOptionTable(t *testing.T) {
	all := KnownOptions()
	if len(all) != len(optionTable) || len(all) == 0 {
		t.Fatalf("%d options are known", len(all))
	}
	all[0].Name = "x"
	if optionTable[0].Name == "x" {
		t.Error("the caller has the table itself")
	}
	if Describe("") != nil || Describe("d").Description() != "d" || len(Describe("d")) != 1 {
		t.Errorf("described as %v", Describe("d"))
	}
	fixed := map[string]bool{}
	for _, o := range KnownOptions() {
		fixed[o.Name] = o.Fixed
		err := Change{Options: TagOptions{o.Name: ""}}.Check()
		if (err != nil) != o.Fixed {
			t.Errorf("a change of %s: %v", o.Name, err)
		}
	}
	if !fixed[OptionOrder] || !fixed[OptionPeriod] || !fixed[OptionZone] || !fixed[OptionMask] || fixed[OptionForm] || fixed[OptionDescription] {
		t.Errorf("fixed are %v", fixed)
	}
}

// A grown table is not rebuilt for each buffer.
func TestTableRarelyGrows(t *testing.T) {
	table := newTable()
	const tags = 5000
	made, slots := 0, table.slots.Load()
	for i := range tags {
		b := &Buffer{tag: fmt.Sprint(i)}
		table.put(b)
		if table.slots.Load() != slots {
			made, slots = made+1, table.slots.Load()
		}
		table.remove(b)
		if table.get("") != nil {
			t.Fatal("what was removed has the empty name")
		}
	}
	if made > tags/4 || len(*slots) > 8 {
		t.Errorf("made anew %d times for one buffer at a time, with %d slots", made, len(*slots))
	}
}

// Memories join, with the higher mark of each source.
func TestMergeMemories(t *testing.T) {
	dir := t.TempDir()
	to, from := openMemory(t, filepath.Join(dir, "to")), openMemory(t, filepath.Join(dir, "from"))
	for _, c := range []struct {
		m           Memory
		tag, source string
		high        int64
	}{
		{to, "order", "a", 5}, {from, "order", "a", 7}, {to, "order", "b", 9}, {from, "order", "b", 8}, {to, "order", "c", 4}, {from, "order", "c", 4},
		{from, "order", "zero", 0}, {to, "mine", "", 3}, {from, "theirs", "", 2}, {from, identityTag, "", 0},
	} {
		server := "to"
		if c.m == from {
			server = "from"
		}
		remember(t, c.m, c.tag, c.source, c.high, server)
	}
	if err := to.Merge(from); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		recalls(t, to, "order", map[string]Mark{"a": {7, "from"}, "b": {9, "to"}, "c": {4, "to"}, "zero": {0, "from"}})
		recalls(t, to, "mine", map[string]Mark{"": {3, "to"}})
		recalls(t, to, "theirs", map[string]Mark{"": {2, "from"}})
		if to.Tags() != 3 || from.Tags() != 2 {
			t.Errorf("%d and %d tags, without the identity of the store", to.Tags(), from.Tags())
		}
		to.Close()
		to = openMemory(t, filepath.Join(dir, "to"))
	}
	to.Close()
	remember(t, from, "order", "a", 100, "")
	if err := to.Merge(from); !errors.Is(err, os.ErrClosed) {
		t.Errorf("into a closed one: %v", err)
	}
}

// A merged memory reaches the disk, or the merge fails.
func TestMergeSyncs(t *testing.T) {
	dir := t.TempDir()
	to, from := openMemory(t, filepath.Join(dir, "to")), openMemory(t, filepath.Join(dir, "from"))
	failing := errors.New("no sync")
	failSync(t, failing)
	if err := to.Merge(from); !errors.Is(err, failing) {
		t.Errorf("got %v", err)
	}
	if err := syncFolder(filepath.Join(dir, "none", "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := syncFolder(filepath.Join(dir, "file")); !errors.Is(err, failing) {
		t.Errorf("a folder: %v", err)
	}
}

// failSync has each sync fail until the test ends.
func failSync(t *testing.T, err error) {
	before := fsync
	fsync = func(*os.File) error { return err }
	t.Cleanup(func() { fsync = before })
}

// Only a synced and locked file replaces another one.
func TestRewriteIsWhole(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, path string){
		"no sync": func(t *testing.T, _ string) { failSync(t, errors.New("no sync")) },
		"locked by another": func(t *testing.T, path string) {
			f, err := os.Create(path + ".new")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			if err := lockFile(f); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "counters")
			m := openMemory(t, path)
			before, err := m.file.Stat()
			if err != nil {
				t.Fatal(err)
			}
			spoil(t, path)
			for high := int64(0); m.size < minRewrite+minRewrite/2; high++ {
				remember(t, m, "order", "", high, longServer)
			}
			now, err := os.Stat(path)
			if err != nil || !os.SameFile(before, now) {
				t.Errorf("the file was replaced: %v", err)
			}
			if _, err := os.Stat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("what could not replace it stays: %v", err)
			}
		})
	}
}

// After a rewrite the file may grow to four times what its marks take.
func TestRewriteLimit(t *testing.T) {
	m := openMemory(t, filepath.Join(t.TempDir(), "counters"))
	for i := range 150 { // whose marks take more than a quarter of minRewrite
		remember(t, m, fmt.Sprint("tag-", i), "", 1, longServer)
	}
	fill(t, m, "order")
	if m.limit != rewriteFactor*m.size {
		t.Errorf("%d bytes, to be rewritten at %d", m.size, m.limit)
	}
}

// A store that hands a tag to callers by another call than the buffer knows is refused, not asked.
func TestMaskedTagOfAStoreWithoutMasks(t *testing.T) {
	b := NewBuffer(&lyingStore{err: ErrMasked}, "order", nil)
	if _, err := b.Next(t.Context()); !errors.Is(err, ErrMasked) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Next(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrStrict) {
		t.Errorf("a caller who has gone: %v", err)
	}
}
