package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// Any server renews any lease, up to its limit.
func TestRenewal(t *testing.T) {
	inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
		l := claimFrom(t, brokers[0], "web-1")
		time.Sleep(4 * time.Second)
		next, err := brokers[1].Renew(t.Context(), l.ID(), poolTTL)
		if err != nil || next.Limit != l.Limit.Add(4*time.Second) || !next.Floor.Equal(l.Floor) || next.Worker != l.Worker {
			t.Fatalf("%+v, %v", next, err)
		}
		if short, err := brokers[1].Renew(t.Context(), l.ID(), time.Second); err != nil || short.Limit.Before(next.Limit) {
			t.Errorf("a shorter TTL lowered the limit: %+v, %v", short, err)
		}
		time.Sleep(poolTTL)
		_, err = brokers[0].Renew(t.Context(), l.ID(), poolTTL)
		isError(t, "after the limit", err, worker.ErrLeaseLost)
		claimFrom(t, brokers[0], "web-2")
		claimFrom(t, brokers[0], "web-3")
		_, err = brokers[0].Renew(t.Context(), l.ID(), poolTTL)
		isError(t, "the worker ID is another program's", err, worker.ErrLeaseLost)
	})
}

// A renewal of unknown outcome counts after a second swap, whose answer arrives.
func TestRenewalWithoutAnswer(t *testing.T) {
	for _, fault := range []swapFault{swapLost, replyLost} {
		inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
			l := claimFrom(t, brokers[0], "web-1")
			time.Sleep(time.Second)
			swaps := 0
			w.plan(func(_, _ worker.Record) swapFault {
				if swaps++; swaps == 1 {
					return fault
				}
				return swapWorks
			})
			if _, err := brokers[0].Renew(t.Context(), l.ID(), 0); err != nil || swaps != 2 {
				t.Errorf("fault %d: %v after %d swaps", fault, err, swaps)
			}
		})
	}
}

// A renewal of unknown outcome leaves a record alone that another program has by then.
func TestRenewalFindsAnother(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		l := claimFrom(t, brokers[0], "web-1")
		other := worker.NewInstance()
		w.plan(func(old, _ worker.Record) swapFault {
			w.fault.Store(nil)
			next := old
			next.Instance, next.Term = other, old.Term+1
			if _, err := w.reg.Swap(t.Context(), old, next); err != nil {
				t.Error(err)
			}
			return swapLost
		})
		_, err := brokers[0].Renew(t.Context(), l.ID(), 0)
		isError(t, "renew", err, worker.ErrLeaseLost)
		records, _ := w.reg.List(t.Context())
		if len(records) != 2 || records[0].Instance != other {
			t.Errorf("the other program's record became %+v", records)
		}
	})
}

// A renewal whose answer comes after the limit does not count.
func TestPoolRenewedLate(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		l := claimFrom(t, brokers[0], "web-1")
		time.Sleep(poolTTL - 500*time.Millisecond)
		w.plan(func(_, _ worker.Record) swapFault {
			time.Sleep(600 * time.Millisecond)
			return swapWorks
		})
		_, err := brokers[0].Renew(t.Context(), l.ID(), 0)
		isError(t, "answered after the limit", err, worker.ErrLeaseLost)
	})
}

// A registry restored from a backup shows a lease whose worker ID another program has had since.
func TestRenewalAfterRestore(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		lost := claimFrom(t, brokers[0], "web-1")
		backup := w.reg.Backend.Snapshot()
		time.Sleep(poolTTL)
		for range 2 {
			claimFrom(t, brokers[0], "web-2")
		}
		w.reg.Backend.Restore(backup)
		time.Sleep(poolTTL)
		l, err := brokers[0].Renew(t.Context(), lost.ID(), poolTTL)
		isError(t, fmt.Sprintf("a renewal of times that another program had: %+v", l), err, worker.ErrLeaseLost)
	})
}

// A renewal asks for the time, and the answer takes long. Meanwhile the lease ends, another program
// has the worker ID, and a fail-over loses that. The estimated time is still before the limit.
func TestFailOverDuringRenewal(t *testing.T) {
	inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
		w.lossy.Store(true)
		keepStamping(t, brokers[0], poolDelay)
		claimFrom(t, brokers[0], "web-1")
		l := claimFrom(t, brokers[0], "web-2")
		before := w.reg.Backend.Snapshot()
		time.Sleep(time.Until(l.Limit) - 100*time.Millisecond)
		asked := 0
		slow := func(*process) {
			if asked++; asked != 2 { // the first answer is the server's
				return
			}
			w.asked.Store(nil)
			time.Sleep(120 * time.Millisecond)
			claimFrom(t, brokers[1], "web-3")
			claimFrom(t, brokers[1], "web-4")
			w.failOver(before)
		}
		w.asked.Store(&slow)
		renewed, err := brokers[0].Renew(t.Context(), l.ID(), 0)
		isError(t, fmt.Sprintf("%+v", renewed), err, worker.ErrLeaseLost)
	})
}

// Renewals at their usual pace do not make claims wait, where only an unbroken line of writes tells
// how long the server has reigned.
func TestRenewalsLeaveClaimsAlone(t *testing.T) {
	inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
		w.lossy.Store(true)
		w.untracked.Store(true)
		keepStamping(t, brokers[0], poolDelay)
		l := claimFrom(t, brokers[0], "web-1")
		for range 10 { // servers still write
			keepStamping(t, brokers[1], 3500*time.Millisecond)
			time.Sleep(500 * time.Millisecond)
			var err error
			if l, err = brokers[0].Renew(t.Context(), l.ID(), poolTTL); err != nil {
				t.Fatal(err)
			}
		}
		claimFrom(t, brokers[1], "web-2")
	})
}

// A server that tolerates more than the pool's claim delay allows grants nothing: its limits would
// be before earlier ones.
func TestPoolOfIntolerantServers(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		w.lossy.Store(true)
		keepStamping(t, brokers[0], poolDelay)
		used := claimFrom(t, brokers[0], "web-1")
		claimFrom(t, brokers[0], "web-2")
		time.Sleep(poolTTL)
		p := &process{node: w.nodes[0], dead: make(chan struct{})}
		pools, err := worker.NewPools(&port{p}, &worker.Options{Tolerance: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			_, err = pools.Claim(t.Context(), worker.PoolClaim{Pool: "orders"})
			isError(t, "no time is left", err, leaf.ErrUnsupported)
		}
		for range 2 {
			if l := claimFrom(t, brokers[0], "web-3"); l.Floor.Before(used.Limit) {
				t.Errorf("a lease from %v on; one lasted until %v", l.Floor, used.Limit)
			}
		}
	})
}

// New leases begin above those of before a restore, which the backup does not know.
func TestFloorAfterRestore(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		backup := w.reg.Backend.Snapshot()
		lost := claimFrom(t, brokers[0], "web-1")
		w.reg.Backend.Restore(backup)
		time.Sleep(poolTTL + worker.DefaultTolerance)
		for range 2 {
			if l := claimFrom(t, brokers[0], "web-2"); l.Floor.Before(lost.Limit) {
				t.Errorf("a lease from %v on; one lasted until %v", l.Floor, lost.Limit)
			}
		}
	})
}
