package redis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/segment"
)

func Example() {
	ctx := context.Background()
	prefix := fmt.Sprint("example", time.Now().UnixNano())
	db, err := redis.Open(redis.Config{Addrs: []string{shared.Addr()}, Prefix: prefix}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}}); err != nil { // once
		log.Fatal(err)
	}
	ids := segment.NewBuffer(db.Store(), "order", nil)
	for range 3 {
		id, err := ids.Next(ctx)
		fmt.Println(id, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}

// An existing client serves a DB if it sends nothing twice.
func ExampleOpen_client() {
	client := goredis.NewClient(&goredis.Options{Addr: shared.Addr(), MaxRetries: -1})
	defer client.Close()
	db, err := redis.Open(redis.Config{Client: client, Prefix: "orders"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(db.Store().Exists(context.Background()))
	// Output: false <nil>
}
