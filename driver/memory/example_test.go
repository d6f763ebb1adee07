package memory_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// A store in memory is for tests, and for IDs that need to be unique only while the process runs.
func Example() {
	ctx := context.Background()
	store := memory.New().Store()
	if err := store.Create(ctx, segment.Tag{Name: "order", MaxID: 1, Step: 1000}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		grant, err := store.Advance(ctx, "order", 10)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(grant.Range.Start, grant.Range.End)
	}
	// Output:
	// 1 11
	// 11 21
}
