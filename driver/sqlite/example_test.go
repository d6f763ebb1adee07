package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // any database/sql driver of SQLite will do

	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
)

// IDs from a file, without a server. Init is called once, when the file is made.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "leaf")
	check(err)
	defer os.RemoveAll(dir)
	file, err := sql.Open("sqlite", filepath.Join(dir, "ids.db"))
	check(err)
	defer file.Close()
	db, err := sqlite.New(file, nil)
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
