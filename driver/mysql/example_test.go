package mysql_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
)

// IDs of an application's own MySQL database, without a server of Leaf's. Init is
// called once; the table may be Java Leaf's.
func Example() {
	ctx := context.Background()
	pool, err := mysql.OpenDB(dsn) // user:password@tcp(db1:3306)/ids
	check(err)
	defer pool.Close()
	db, err := mysql.New(pool, nil)
	check(err)
	defer db.Close()
	check(db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}}))
	ids := segment.NewBuffer(db.Store(), "order", nil)
	defer ids.Close(ctx)
	for range 3 {
		id, err := ids.Next(ctx)
		check(err)
		fmt.Println(id)
	}
	// Output:
	// 1
	// 2
	// 3
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
