package kv_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// A new key-value store becomes a store of tags and a registry of worker IDs by its
// backend alone: get, compare-and-swap, list and clock. Here it is a map in memory.
func Example() {
	ctx := context.Background()
	var backend kv.Backend = memory.NewBackend()
	db := kv.New(backend, nil)
	defer db.Close()
	if err := db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}}); err != nil {
		log.Fatal(err)
	}
	grant, err := db.Store().Advance(ctx, "order", 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(grant.Range)
	// Output: [1, 11)
}
