package client_test

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

// exampleServer replaces a server in the examples.
func exampleServer() (url string, stop func()) {
	store := memory.New().Store()
	if err := store.Create(context.Background(), segment.Tag{Name: "order", MaxID: 1, Step: 1000}); err != nil {
		log.Fatal(err)
	}
	return testleaf.Run(testleaf.Options{Store: store})
}

func Example() {
	url, stop := exampleServer() // http://127.0.0.1:8080
	defer stop()
	ctx := context.Background()
	ids, err := client.New(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close(ctx)
	id, err := ids.Next(ctx, "order")
	if err != nil {
		log.Fatal(err)
	}
	batch, err := ids.Take(ctx, "order", nil, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id, batch)
	// Output: 1 [[2, 12)]
}

// A hot loop has a cursor of its own: it contends with other goroutines once in a block.
func ExampleClient_Cursor() {
	url, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	ids, err := client.New(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close(ctx)
	cursor := ids.Cursor("order", 64)
	var sum int64
	for range 100 {
		id, err := cursor.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		sum += id
	}
	fmt.Println(sum)
	// Output: 5050
}

// IDs that increase over all programs cost a call each.
func ExampleClient_Ordered() {
	url, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	ids, err := client.New(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close(ctx)
	invoices := ids.Ordered("segment", "order")
	for range 2 {
		id, err := invoices.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id)
	}
	// Output:
	// 1
	// 2
}

// Somebody has inserted rows with IDs up to 120000 by hand.
func ExampleClient_Observe() {
	url, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	ids, err := client.New(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close(ctx)
	if _, err := ids.Observe(ctx, "order", 120_000); err != nil {
		log.Fatal(err)
	}
	next, err := ids.Peek(ctx, "order")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(next > 120_000)
	// Output: true
}

// The observer counts and times finished calls to servers; most IDs need no call.
func ExampleOptions_onCall() {
	url, stop := exampleServer()
	defer stop()
	ctx := context.Background()
	var calls, failures atomic.Int64
	ids, err := client.New(url, &client.Options{OnCall: func(c client.Call) {
		calls.Add(1)
		if c.Err != nil {
			failures.Add(1)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer ids.Close(ctx)
	for range 50 {
		if _, err := ids.Next(ctx, "order"); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(calls.Load(), failures.Load())
	// Output: 1 0
}
