package zookeeper_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leaf-id/leaf/driver/zookeeper"
	"github.com/leaf-id/leaf/snowflake"
)

// A pool of worker IDs, and a generator that leases one of them.
func ExampleOpen() {
	ctx := context.Background()
	db, err := zookeeper.Open([]string{shared.Addr()}, &zookeeper.Options{Name: "example"}) // z1:2181, z2:2181, z3:2181
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.InitRegistry(ctx); err != nil { // once
		log.Fatal(err)
	}
	node, err := snowflake.Open(ctx, db.Registry(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close(ctx)
	id, err := node.Next(ctx)
	fmt.Println(id > 0, err)
	// Output: true <nil>
}
