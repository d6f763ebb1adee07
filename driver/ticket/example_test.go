package ticket_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/segment"
)

// Two ticket servers that deal in blocks of 1000 IDs; either of them alone keeps issuing.
// Init is called once.
func Example() {
	ctx := context.Background()
	var servers []ticket.Server
	for _, host := range []string{"db1", "db2"} {
		db, err := mysql.OpenDB("user:password@tcp(" + host + ":3306)/tickets")
		if err != nil {
			log.Fatal(err)
		}
		defer db.Close()
		servers = append(servers, ticket.Server{Name: host, DB: db})
	}
	db, err := ticket.New(servers, &ticket.Options{Layout: ticket.Layout{Stride: 1000}})
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
	fmt.Println(grant.Range.Len(), "IDs of server", grant.Source)
}
