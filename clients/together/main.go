// The together command takes IDs with the client in Go, for clients/together/show.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/leaf-id/leaf/client"
)

func main() {
	ids, err := client.New(os.Args[1], &client.Options{Wait: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	file, err := os.Create(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	n, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	rate, err := strconv.Atoi(os.Args[4])
	if err != nil {
		log.Fatal(err)
	}
	out, ctx, begun := bufio.NewWriter(file), context.Background(), time.Now()
	for i := range n {
		id, err := ids.Next(ctx, "order")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintln(out, id)
		if i%1000 == 0 {
			time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
	_ = ids.Close(ctx) // others may have taken IDs since
}
