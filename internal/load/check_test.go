package load

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/leaf-id/leaf"
)

// check compares answers, which come in this order, through one feed each.
func check(memory int64, answers ...[]leaf.Range) Check {
	c := newChecker([]Key{{"order", "order"}}, memory)
	for _, ranges := range answers {
		f := c.feed()
		f.add(0, &IDs{Ranges: ranges})
		f.flush()
	}
	return c.close()
}

func TestDuplicates(t *testing.T) {
	const edge = 1 << 32
	tests := []struct {
		name    string
		answers [][]leaf.Range
		checked int64
		want    []string
	}{
		{"none", [][]leaf.Range{{{Start: 1, End: 5}}, {{Start: 5, End: 9}}, {{Start: 0, End: 1}}}, 9, []string{}},
		{"the same ID", [][]leaf.Range{{{Start: 7, End: 8}}, {{Start: 7, End: 8}}}, 2, []string{"7 of order"}},
		{"in one answer", [][]leaf.Range{{{Start: 1, End: 4}, {Start: 3, End: 5}}}, 5, []string{"3 of order"}},
		{"three times", [][]leaf.Range{{{Start: 1, End: 2}, {Start: 1, End: 2}}, {{Start: 1, End: 2}}}, 3, []string{"1 of order", "1 of order"}},
		{"ranges overlap", [][]leaf.Range{{{Start: 100, End: 200}}, {{Start: 198, End: 300}}}, 202, []string{"198 of order", "199 of order"}},
		{"a range within one", [][]leaf.Range{{{Start: 0, End: 1 << 20}}, {{Start: 70_000, End: 70_002}}}, 1<<20 + 2, []string{"70000 of order", "70001 of order"}},
		{"at the edge of a part", [][]leaf.Range{{{Start: edge - 2, End: edge + 2}}, {{Start: edge, End: edge + 1}}, {{Start: edge + 2, End: edge + 4}}}, 7, []string{"4294967296 of order"}},
		{"the largest", [][]leaf.Range{{{Start: 1<<63 - 3, End: 1<<63 - 1}}, {{Start: 1<<63 - 2, End: 1<<63 - 1}}}, 3, []string{"9223372036854775806 of order"}},
	}
	for _, tt := range tests {
		got := check(1<<30, tt.answers...)
		if got.Checked != tt.checked || got.Kept != tt.checked || got.Duplicates != int64(len(tt.want)) {
			t.Errorf("%s: %+v", tt.name, got)
		}
		if diff := cmp.Diff(tt.want, got.Examples); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Every ID of a shuffled run is compared, and the ones that come twice are found.
func TestDuplicatesAmongMany(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n, twice = 200_000, 37
	ids := make([]int64, n, n+twice)
	for i := range ids {
		ids[i] = 1<<40 + int64(i)*5
	}
	ids = append(ids, ids[:twice]...)
	random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	c := newChecker([]Key{{"a", "a"}, {"b", "b"}}, 1<<30)
	feeds := []*feed{c.feed(), c.feed(), c.feed()}
	for i, id := range ids {
		for key := range 2 { // the same IDs in another space are no duplicates
			feeds[i%3].add(key, &IDs{Ranges: []leaf.Range{{Start: id, End: id + 1}}})
		}
	}
	for _, f := range feeds {
		f.flush()
	}
	got := c.close()
	if got.Checked != 2*(n+twice) || got.Duplicates != 2*twice || len(got.Examples) != exampleCount {
		t.Errorf("%+v", got)
	}
}

func TestDuplicateUUIDs(t *testing.T) {
	c := newChecker([]Key{{"v7", "uuid"}, {"v4", "uuid"}}, 1<<30)
	a, b := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"), uuid.New()
	f := c.feed()
	f.add(0, &IDs{UUIDs: []uuid.UUID{a, b}})
	f.add(1, &IDs{UUIDs: []uuid.UUID{a}})
	f.flush()
	got := c.close()
	want := Check{Checked: 3, Kept: 3, Duplicates: 1, Examples: []string{a.String() + " of uuid"}, Memory: 2 * uuidMemory}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Beyond the bound further IDs are compared with the kept ones, and the memory does not grow.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 4 << 20
	random := rand.New(rand.NewPCG(3, 4))
	c := newChecker([]Key{{"order", "order"}}, limit)
	f := c.feed()
	one := func(id int64) { f.add(0, &IDs{Ranges: []leaf.Range{{Start: id, End: id + 1}}}) }
	one(1)
	for range 300_000 { // scattered, so that each costs much
		one(2 + random.Int64N(1<<62))
	}
	one(1)
	f.flush()
	got := c.close()
	if got.Checked != 300_002 || got.Kept == 0 || got.Kept > 100_000 || got.Duplicates != 1 || !slices.Equal(got.Examples, []string{"1 of order"}) {
		t.Errorf("%+v", got)
	}
	if got.Memory < limit || got.Memory > 20*limit { // it is looked at every so many IDs
		t.Errorf("%d bytes", got.Memory)
	}
}

// The reported memory is the growth of the heap.
func TestMemoryIsCounted(t *testing.T) {
	for name, next := range streams {
		before := heap()
		c := newChecker([]Key{{"order", "order"}}, 1<<40)
		fill(c, 3_000_000, next())
		got := c.close()
		grown := heap() - before
		runtime.KeepAlive(c)
		if counted := got.Memory; counted < grown*2/3-100_000 || counted > 2*grown+100_000 {
			t.Errorf("%s: %d bytes counted, the heap has grown by %d", name, counted, grown)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// streams make IDs in a server's order.
var streams = map[string]func() func() int64{
	"segment": func() func() int64 {
		n := int64(0)
		return func() int64 { n++; return n }
	},
	"segment, half of them taken by others": func() func() int64 {
		n, random := int64(0), rand.New(rand.NewPCG(5, 6))
		return func() int64 { n += 1 + random.Int64N(3); return n }
	},
	"snowflake, 4096 each ms": func() func() int64 { return snowflakes(4096) },
	"snowflake, 100 each ms":  func() func() int64 { return snowflakes(100) },
	"snowflake, 10 each ms":   func() func() int64 { return snowflakes(10) },
}

// snowflakes are those of one worker that issues so many IDs each millisecond, from a
// random sequence number on.
func snowflakes(perTick int64) func() int64 {
	random := rand.New(rand.NewPCG(7, 8))
	tick, left, next := int64(500_000_000_000), int64(0), int64(0)
	return func() int64 {
		if left == 0 {
			tick, left = tick+1, perTick
			next = tick<<22 | 7<<12 | random.Int64N(4097-perTick)
		}
		left--
		next++
		return next - 1
	}
}

// fill hands n IDs out to 50 clients in turn.
func fill(c *checker, n int, next func() int64) {
	var feeds []*feed
	for range 50 {
		feeds = append(feeds, c.feed())
	}
	ids := IDs{Ranges: make([]leaf.Range, 1)}
	for i := range n {
		id := next()
		ids.Ranges[0] = leaf.Range{Start: id, End: id + 1}
		feeds[i%len(feeds)].add(0, &ids)
	}
	for _, f := range feeds {
		f.flush()
	}
}

// BenchmarkCheck tells the time for an ID, and the memory that 100 million need.
func BenchmarkCheck(b *testing.B) {
	for name, next := range streams {
		b.Run(name, func(b *testing.B) {
			c := newChecker([]Key{{"order", "order"}}, 1<<40)
			fill(c, b.N, next())
			got := c.close()
			if got.Duplicates != 0 || got.Checked != int64(b.N) {
				b.Errorf("%+v", got)
			}
			b.ReportMetric(float64(got.Memory)/float64(b.N), "B/ID")
		})
	}
}
