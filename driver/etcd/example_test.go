package etcd_test

import (
	"context"
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/segment"
)

// A store and a registry are created once, and then opened by each process.
func ExampleOpen() {
	ctx := context.Background()
	db, err := etcd.Open(shared.Endpoints(), &etcd.Options{Prefix: "/ids"}) // host:port of the members
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}}); err != nil {
		log.Fatal(err)
	}
	grant, err := db.Store().Advance(ctx, "order", 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(grant.Range.Start, grant.Range.End)
	// Output: 1 11
}

// The package can use an existing client, and leaves it open.
func ExampleNew() {
	ctx := context.Background()
	client, err := clientv3.New(clientv3.Config{Endpoints: shared.Endpoints(), MaxUnaryRetries: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	db, err := etcd.New(client, &etcd.Options{Prefix: "/workers"})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.InitRegistry(ctx); err != nil {
		log.Fatal(err)
	}
	record, err := db.Registry().Load(ctx, 7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(record.Worker, record.Held())
	// Output: 7 false
}
