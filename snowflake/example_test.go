package snowflake_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A program leases its worker ID. Processes on one SQLite file never share one, and a killed
// process hands it back at its next start.
func Example() {
	ctx, dir := context.Background(), filepath.Join(os.TempDir(), fmt.Sprint("ids-", os.Getpid()))
	defer os.RemoveAll(dir)
	file, _ := sql.Open("sqlite", filepath.Join(dir, "workers.db"))
	db, _ := sqlite.New(file, nil)
	err := errors.Join(os.Mkdir(dir, 0o700), db.InitRegistry(ctx))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		log.Fatal(err)
	}
	state, err := worker.OpenStateFile(filepath.Join(dir, "lease"))
	if err != nil {
		log.Fatal(err)
	}
	ids, err := snowflake.Open(ctx, db.Registry(), &snowflake.NodeOptions{Keeper: worker.Options{State: state}})
	if err != nil {
		log.Fatal(err)
	}
	id, err := ids.Next(ctx)
	fmt.Println(id > 0, err, ids.Close(ctx))
	// Output: true <nil> <nil>
}

// The registry of this example serves one process; drivers have those for many.
func ExampleOpen() {
	ctx := context.Background()
	ids, err := snowflake.Open(ctx, memory.New().Registry(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close(ctx)
	id, err := ids.Next(ctx)
	fmt.Println(id > 1<<60, err)
	// Output: true <nil>
}

// One worker ID serves several layouts: here Java Leaf's, and one for JavaScript numbers.
func ExampleNode_Generator() {
	ctx := context.Background()
	java, _ := snowflake.Preset("leaf")
	short, _ := snowflake.Preset("js53")
	node, err := snowflake.Open(ctx, memory.New().Registry(), &snowflake.NodeOptions{
		Layouts: []snowflake.NodeLayout{{Name: "leaf", Layout: java}, {Name: "js53", Layout: short}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	id, err := node.Generator("js53").Next(ctx)
	fmt.Println(id < 1<<53, err)
	// Output: true <nil>
}

// Without a registry, the program must see to it that no other one has worker ID 7.
func ExampleGenerator() {
	layout, _ := snowflake.Preset("leaf")
	ids, err := snowflake.New(layout, nil)
	if err != nil {
		log.Fatal(err)
	}
	ids.Begin(worker.Unfenced(7, time.Now(), time.Time{}))
	id, err := ids.Next(context.Background())
	parts, _ := layout.Decode(id)
	fmt.Println(parts.Worker, err)
	// Output: 7 <nil>
}

func ExampleLayout_Decode() {
	layout, _ := snowflake.Preset("leaf")
	parts, err := layout.Decode(1234567890123456789)
	fmt.Println(parts.Time.Format(time.RFC3339Nano), parts.Worker, parts.Sequence, err)
	// Output: 2020-03-02T19:54:56.824Z 664 277 <nil>
}

// The layout of Baidu's uid-generator, with more years.
func ExamplePreset() {
	uid, _ := snowflake.Preset("uid")
	parts, err := uid.Decode(1 << 60)
	fmt.Println(parts.Time.Format(time.DateTime), parts.Worker, parts.Sequence, err)
	fmt.Println(uid.MaxWorker(), uid.MaxSequence(), uid.Last().Format(time.DateOnly))
	// Output:
	// 2024-11-20 13:24:16 0 0 <nil>
	// 524287 8191 2084-06-06
}

// A layout of one's own: 10 ms ticks for 174 years, 65,536 workers.
func ExampleLayout_Compose() {
	layout := snowflake.Layout{
		Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tick: 10 * time.Millisecond,
		TimeBits: 39, WorkerBits: 16, SequenceBits: 8,
	}
	tick := layout.TickAt(time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC))
	id, err := layout.Compose(tick, 5, 255)
	fmt.Println(tick, id, err)
	// Output: 100 1677723135 <nil>
}
