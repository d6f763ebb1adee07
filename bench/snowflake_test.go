package bench_test

import (
	"context"
	"testing"
	"time"

	"github.com/bwmarrin/snowflake"

	leafsnowflake "github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// timeSources make IDs of 41 bits of milliseconds, 10 of worker ID and 12 of sequence,
// but for the atomic add. "snowflake" borrows from the future, as it does in bursts;
// "paced" has used up what it may borrow and sleeps, bwmarrin spins: for both, 4096 IDs a
// millisecond, 244 ns each, are the format's ceiling.
var timeSources = []struct {
	name string
	open func(testing.TB) source
}{
	{"atomic", func(testing.TB) source { return new(counter) }},
	{"snowflake", func(tb testing.TB) source { return newSnowflake(tb, 1000*time.Hour) }},
	{"paced", func(tb testing.TB) source { return newSnowflake(tb, 10*time.Millisecond) }},
	{"bwmarrin", func(tb testing.TB) source { return newBwmarrin(tb) }},
}

func BenchmarkSnowflakeNext(b *testing.B) {
	for _, s := range timeSources {
		b.Run(s.name, func(b *testing.B) {
			benchmarkNext(b, s.open(b))
		})
	}
}

// BenchmarkSnowflakeTake reserves 1000 IDs at a time; ns/ID is the figure to compare
// with BenchmarkSnowflakeNext.
func BenchmarkSnowflakeTake(b *testing.B) { benchmarkTake(b, newSnowflake(b, 1000*time.Hour)) }

// TestTimeSources shows that what is measured does its work: every ID once.
func TestTimeSources(t *testing.T) {
	for _, s := range timeSources {
		t.Run(s.name, func(t *testing.T) { everyIDOnce(t, s.open(t), 4, 300_000) })
	}
}

func newSnowflake(tb testing.TB, ahead time.Duration) *leafsnowflake.Generator {
	tb.Helper()
	layout, _ := leafsnowflake.Preset("leaf")
	ids, err := leafsnowflake.New(layout, &leafsnowflake.Options{MaxAhead: ahead})
	if err != nil {
		tb.Fatal(err)
	}
	ids.Begin(worker.Unfenced(1, time.Time{}, time.Time{}))
	return ids
}

type bwmarrin struct{ node *snowflake.Node }

func newBwmarrin(tb testing.TB) bwmarrin {
	tb.Helper()
	node, err := snowflake.NewNode(1)
	if err != nil {
		tb.Fatal(err)
	}
	return bwmarrin{node}
}

func (b bwmarrin) Next(context.Context) (int64, error) { return b.node.Generate().Int64(), nil }
