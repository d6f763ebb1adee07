package snowflake_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

func ExampleGenerator() {
	layout, _ := snowflake.Preset("leaf")
	ids, err := snowflake.New(layout, nil)
	if err != nil {
		panic(err)
	}
	// A worker.Keeper does this with the worker ID that it has claimed. Without one it
	// is up to you that nobody else ever uses worker ID 7.
	ids.Begin(worker.Unfenced(7, time.Now(), time.Time{}))

	id, err := ids.Next(context.Background())
	if err != nil {
		panic(err)
	}
	parts, err := layout.Decode(id)
	if err != nil {
		panic(err)
	}
	fmt.Println("worker", parts.Worker, "in this minute:", time.Since(parts.Time).Abs() < time.Minute)
	// Output: worker 7 in this minute: true
}

func ExampleLayout_Decode() {
	layout, _ := snowflake.Preset("leaf")
	parts, err := layout.Decode(1234567890123456789)
	fmt.Println(parts.Time.Format(time.RFC3339Nano), parts.Worker, parts.Sequence, err)
	// Output: 2020-03-02T19:54:56.824Z 664 277 <nil>
}
