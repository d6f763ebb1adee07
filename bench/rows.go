package bench

import (
	"context"
	"time"
)

// A Source hands out an ID. All are called in the same way, in the same loop.
type Source interface {
	Next(ctx context.Context) (int64, error)
}

// A Row is a subject of the measurements in process.
type Row struct {
	Key  string  // short; of a row of the JVM its name there
	Name string  // in the table
	Per  float64 // IDs that one call has; 0: one

	// Open returns what gives each goroutine its source, all of one generator. It is nil for
	// a row that the JVM measures.
	Open func() (func() Source, error)
}

// Rows in the order of the table; the others are compared with the first. Those of this module use a
// store in memory, at least a million IDs at a time.
var Rows = []Row{
	{Key: "atomic", Name: "bare atomic add", Open: shared(func() (Source, error) { return new(counter), nil })},
	{Key: "bounded", Name: "the same behind a pointer, and compared", Open: shared(func() (Source, error) { return newBounded(), nil })},
	{Key: "mapped", Name: "the same, found by name in a `sync.Map`", Open: shared(func() (Source, error) { return newMapped(), nil })},
	{Key: "buffer", Name: "`segment.Buffer.Next`", Open: shared(func() (Source, error) { return newBuffer() })},
	{Key: "set", Name: "`segment.Set.Next`, by name", Open: shared(newNamed)},
	{Key: "cursor", Name: "`segment.Cursor`, one each", Open: cursors},
	{Key: "take", Name: "`segment.Buffer.Take`, 1000, per ID", Per: takeCount, Open: batches},
	{Key: "rwmutex", Name: "Java Leaf's design: RWMutex", Open: shared(newPair)},
	{Key: "cosid-segment-chain", Name: "CosId `SegmentChainId` (JVM)"},
	{Key: "snowflake", Name: "`snowflake.Generator`, burst", Open: shared(func() (Source, error) { return newSnowflake(1000 * time.Hour) })},
	{Key: "snowflake-paced", Name: "`snowflake.Generator`, sustained", Open: shared(func() (Source, error) { return newSnowflake(10 * time.Millisecond) })},
	{Key: "bwmarrin", Name: "bwmarrin/snowflake", Open: shared(newBwmarrin)},
	{Key: "sonyflake", Name: "sonyflake v2, default", Open: shared(newSonyflake)},
	{Key: "yitter", Name: "yitter/idgenerator-go, default", Open: shared(newYitter)},
	{Key: "cosid-snowflake", Name: "CosId snowflake (JVM)"},
	{Key: "uid", Name: "`snowflake.Generator`, uid cached", Open: shared(func() (Source, error) { return NewCached(UIDWide, 1000*time.Hour) })},
	{Key: "uid-generator-cached", Name: "uid-generator cached (JVM)"},
	{Key: "xid", Name: "xid", Open: texts(newXID)},
	{Key: "ulid", Name: "ulid", Open: texts(newULID)},
	{Key: "ksuid", Name: "ksuid", Open: texts(newKSUID)},
	{Key: "uuid4", Name: "uuid v4", Open: texts(newUUID4)},
	{Key: "uuid7", Name: "uuid v7", Open: texts(newUUID7)},
	{Key: "atomiclong", Name: "AtomicLong (JVM)"},
}

// shared opens a source that all goroutines share.
func shared(open func() (Source, error)) func() (func() Source, error) {
	return func() (func() Source, error) {
		s, err := open()
		return func() Source { return s }, err
	}
}
