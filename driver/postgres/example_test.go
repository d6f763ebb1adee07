package postgres_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/segment"
)

// IDs of an application's own PostgreSQL database, without a server of Leaf's. Init is called once.
func Example() {
	ctx := context.Background()
	config, err := pgx.ParseConfig(postgresServer.URL("postgres")) // postgres://user:password@db1:5432/ids
	check(err)
	pool := sql.OpenDB(postgres.NewConnector(config))
	defer pool.Close()
	db, err := postgres.New(pool, nil)
	check(err)
	defer db.Close()
	check(db.Init(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}}))
	ids := segment.NewBuffer(db.Store(), "order", nil)
	defer ids.Close(ctx)
	for range 2 {
		id, err := ids.Next(ctx)
		check(err)
		fmt.Println(id)
	}
	// Output:
	// 1
	// 2
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
