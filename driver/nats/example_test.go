package nats_test

import (
	"context"
	"fmt"
	"log"

	leafnats "github.com/leaf-id/leaf/driver/nats"
	"github.com/leaf-id/leaf/segment"
)

// The stream is created once; then each process opens it.
func Example() {
	ctx := context.Background()
	url := shared.URL() // nats://n1:4222,n2:4222,n3:4222
	opts := &leafnats.Options{Stream: "IDS"}
	db, err := leafnats.Open(url, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}}); err != nil {
		log.Fatal(err)
	}
	ids := segment.NewBuffer(db.Store(), "order", nil)
	defer ids.Close(ctx)
	for range 2 {
		id, err := ids.Next(ctx)
		fmt.Println(id, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
}
