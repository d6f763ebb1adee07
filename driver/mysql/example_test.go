package mysql_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
)

// IDs of an application's own MySQL database, without a server of Leaf's.
func ExampleOpenDB() {
	ctx := context.Background()
	db, err := mysql.OpenDB("user:password@tcp(db1:3306)/ids")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	store, err := mysql.NewStore(db, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	ids := segment.NewBuffer(store, "order", nil)
	defer ids.Close(ctx)
	id, err := ids.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(id)
}
