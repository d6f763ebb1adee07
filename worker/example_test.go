package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// printer shows a keeper's messages to the users of its lease.
type printer struct{ begun chan struct{} }

func (p printer) Begin(l *worker.Lease) {
	fmt.Println("worker ID", l.Worker(), "until", l.Limit().After(time.Now()))
	close(p.begun)
}

func (printer) Seal(error) time.Time { return time.Time{} } // it has issued nothing

func ExampleKeeper() {
	ctx, cancel := context.WithCancel(context.Background())
	user := printer{make(chan struct{})}
	keeper, err := worker.NewKeeper(memory.New().Registry(), &worker.Options{LeaseUsers: []worker.LeaseUser{user}})
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- keeper.Run(ctx) }()
	<-user.begun
	cancel()
	fmt.Println("handed back:", <-ended)
	// Output:
	// worker ID 0 until true
	// handed back: <nil>
}

func ExampleOpenStateFile() {
	path := filepath.Join(os.TempDir(), fmt.Sprint("lease-", os.Getpid()))
	defer os.Remove(path)
	state, err := worker.OpenStateFile(path)
	if err != nil {
		log.Fatal(err)
	}
	defer state.Close()
	_, err = worker.OpenStateFile(path) // another process would see the same
	fmt.Println(errors.Is(err, worker.ErrInUse))
	// Output: true
}

// A worker ID that its dead holder left far in the future can be claimed again two minutes
// later.
func ExampleFree() {
	ctx, registry := context.Background(), memory.New().Registry()
	held := worker.Record{Worker: 3, Instance: worker.NewInstance(), Term: 1, Horizon: time.Now().AddDate(1, 0, 0)}
	if _, err := registry.Swap(ctx, worker.Record{Worker: 3}, held); err != nil {
		log.Fatal(err)
	}
	record, err := worker.Free(ctx, registry, 3)
	fmt.Println(record.Held(), time.Until(record.Horizon).Round(time.Minute), err)
	// Output: false 2m0s <nil>
}
