package worker_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

// Programs claim, renew, release, crash and pause; swaps and answers get lost or late; clocks are
// off, and on some registries fail-overs lose writes. No time is issued twice.
func TestPoolSchedules(t *testing.T) {
	var issued [2]int
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 3)
			defer w.end()
			s := &poolSchedule{w: w, rng: rand.New(rand.NewPCG(seed, 28)), lossy: seed%2 == 1}
			s.run(t)
			if err := w.check(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			issued[seed%2] += s.issued
		})
	}
	t.Logf("%d times on registries that lose nothing, %d on others", issued[0], issued[1])
	if min(issued[0], issued[1]) < 10_000 {
		t.Error("hardly anything was issued: the test shows nothing")
	}
}

type poolSchedule struct {
	w        *world
	rng      *rand.Rand
	lossy    bool
	brokers  []broker
	programs []*program
	issued   int
	skew     time.Duration // of the registry's clock
	kept     memory.Snapshot
}

func (s *poolSchedule) run(t *testing.T) {
	s.w.lossy.Store(s.lossy)
	s.w.untracked.Store(s.rng.IntN(4) == 0)
	s.w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(s.skew) })
	for _, n := range s.w.nodes {
		s.brokers = append(s.brokers, n.broker(t))
	}
	if _, err := s.brokers[0].Create(t.Context(), orders()); err != nil {
		t.Fatal(err)
	}
	s.kept = s.w.reg.Backend.Snapshot()
	for i := range 4 {
		s.programs = append(s.programs, &program{w: s.w, name: fmt.Sprint("p", i)})
	}
	s.w.plan(func(_, _ worker.Record) swapFault {
		time.Sleep(time.Duration(s.rng.Int64N(int64(200 * time.Millisecond))))
		switch s.rng.IntN(20) {
		case 0:
			return swapLost
		case 1:
			return replyLost
		case 2:
			return swapLate
		}
		return swapWorks
	})
	for range 500 {
		s.step(t.Context())
		time.Sleep(time.Duration(s.rng.Int64N(int64(time.Second))))
	}
}

func (s *poolSchedule) step(ctx context.Context) {
	b, p := s.brokers[s.rng.IntN(len(s.brokers))], s.programs[s.rng.IntN(len(s.programs))]
	switch s.rng.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		if p.id == "" || s.rng.IntN(10) == 0 {
			if l, err := b.Claim(ctx, worker.PoolClaim{Pool: "orders", TTL: time.Duration(1+s.rng.IntN(10)) * time.Second, Holder: p.name}); err == nil {
				p.adopt(l)
			}
		}
	case 6, 7, 8, 9, 10:
		if p.id != "" {
			l, err := b.Renew(ctx, p.id, time.Duration(1+s.rng.IntN(10))*time.Second)
			switch {
			case err == nil:
				p.adopt(l)
			case errors.Is(err, worker.ErrLeaseLost) && s.rng.IntN(2) == 0:
				s.issued += p.issue(s.rng, 5) // it may, up to the limit
				p.id = ""
			}
		}
	case 11:
		if id := p.id; id != "" {
			p.id = "" // it stops before it sends
			_ = b.Release(ctx, id, p.used)
			_ = b.Release(ctx, id, p.used)
		}
	case 12:
		p.id = "" // it crashes
	case 13:
		s.w.arrive()
	case 14:
		b.node.skew.Store(s.rng.Int64N(int64(8*time.Second)) - int64(4*time.Second))
	case 15:
		s.kept = s.w.reg.Backend.Snapshot()
	case 16:
		if s.lossy && s.rng.IntN(3) == 0 {
			s.w.failOver(s.kept)
			s.skew = time.Duration(s.rng.Int64N(int64(2*time.Second))) - time.Second
			s.kept = s.w.reg.Backend.Snapshot()
		}
	default:
		s.issued += p.issue(s.rng, 1+s.rng.IntN(3))
	}
}
