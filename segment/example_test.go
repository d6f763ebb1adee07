package segment_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
)

// A program that numbers orders. The counter is in an SQLite file.
func Example() {
	ctx, path := context.Background(), filepath.Join(os.TempDir(), fmt.Sprint("ids-", os.Getpid(), ".db"))
	defer os.Remove(path)
	file, _ := sql.Open("sqlite", path)
	db, _ := sqlite.New(file, nil)
	err := db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		log.Fatal(err)
	}
	orders := segment.NewBuffer(db.Store(), "order", nil)
	fmt.Println(orders.Next(ctx))
	fmt.Println(orders.Next(ctx))
	fmt.Println(orders.Close(ctx), db.Close(), file.Close())
	// Output:
	// 1 <nil>
	// 2 <nil>
	// <nil> <nil> <nil>
}

// A batch is a few ranges of consecutive IDs.
func ExampleBuffer_Take() {
	ctx, store := context.Background(), memory.New().Store()
	_ = store.Create(ctx, segment.Tag{Name: "order", MaxID: 100, Step: 1000})
	orders := segment.NewBuffer(store, "order", nil)
	ranges, err := orders.Take(ctx, nil, 20)
	fmt.Println(ranges, err)
	// Output: [[100, 120)] <nil>
}

// A set serves all tags of a store, including later ones.
func ExampleSet() {
	ctx, store := context.Background(), memory.New().Store()
	ids := segment.NewSet(store, nil)
	defer ids.Close(ctx)
	_, err := ids.Next(ctx, "user")
	fmt.Println(errors.Is(err, leaf.ErrUnknownTag))

	_ = store.Create(ctx, segment.Tag{Name: "order", MaxID: 1, Step: 1000})
	fmt.Println(ids.Next(ctx, "order"))
	// Output:
	// true
	// 1 <nil>
}

// A memory outlives the process: IDs that it issued are not issued again, should the store
// lose its latest writes meanwhile.
func ExampleOpenMemory() {
	path := filepath.Join(os.TempDir(), fmt.Sprint("counters-", os.Getpid()))
	defer os.Remove(path)
	ctx := context.Background()
	store := memory.New().Store()
	_ = store.Create(ctx, segment.Tag{Name: "order", MaxID: 1, Step: 1000})
	for range 2 { // two starts of one process
		known, err := segment.OpenMemory(path, nil)
		if err != nil {
			log.Fatal(err)
		}
		orders := segment.NewBuffer(store, "order", &segment.Options{Memory: known})
		id, err := orders.Next(ctx)
		fmt.Println(id == 1, id > 10_000_000, err)
		known.Close() // the process is killed: the buffer is not closed
		// Meanwhile the store loses its latest writes.
		_, _ = store.Alter(ctx, "order", segment.Change{MaxID: new(int64(1)), Force: true})
	}
	// Output:
	// true false <nil>
	// false true <nil>
}

func ExampleLeafStep() {
	fmt.Println(segment.LeafStep(2000, 2000, 0))
	// Output: 4000
}

// Each goroutine of a busy program has a cursor of its own.
func ExampleBuffer_Cursor() {
	ctx, store := context.Background(), memory.New().Store()
	_ = store.Create(ctx, segment.Tag{Name: "order", MaxID: 1, Step: 1000})
	orders := segment.NewBuffer(store, "order", nil)
	defer orders.Close(ctx)
	var wg sync.WaitGroup
	var all sync.Map
	for range 4 {
		wg.Go(func() {
			ids := orders.Cursor(0)
			for range 100 {
				id, _ := ids.Next(ctx)
				if _, twice := all.LoadOrStore(id, true); twice {
					fmt.Println("twice:", id)
				}
			}
		})
	}
	wg.Wait()
	_, one := all.Load(int64(1))
	fmt.Println(one)
	// Output: true
}
