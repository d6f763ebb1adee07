package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// issuer is a user with IDs up to a fraction of a millisecond.
type issuer struct {
	begun chan struct{}
	after time.Time
}

func (i issuer) Begin(*worker.Lease) { close(i.begun) }

func (i issuer) Seal(error) time.Time {
	select {
	case <-i.begun:
		return i.after
	default:
		return time.Time{}
	}
}

// Floors are rounded up and limits down, to the milliseconds of the protocol.
func TestTimesAreRounded(t *testing.T) {
	second := time.Unix(1_800_000_000, 0)
	l := worker.Unfenced(1, second.Add(1), second.Add(time.Millisecond-1))
	if floor, limit := l.Floor().Sub(second), l.Limit().Sub(second); floor != time.Millisecond || limit != 0 {
		t.Errorf("the floor is rounded to %v, the limit to %v", floor, limit)
	}
	registry, user := memory.New().Registry(), issuer{make(chan struct{}), time.Now().Add(time.Hour).Truncate(time.Second).Add(1)}
	k, err := worker.NewKeeper(registry, &worker.Options{LeaseUsers: []worker.LeaseUser{user}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.Run(ctx) }()
	<-user.begun
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	records, err := registry.List(t.Context())
	if err != nil || len(records) != 1 || records[0].Horizon.Before(user.after) {
		t.Errorf("handed back below %v: %+v, %v", user.after, records, err)
	}
}
