package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

func TestClockKeepsToItsAnchor(t *testing.T) {
	wall, mono := time.UnixMilli(1_000_000), time.Duration(0)
	c := worker.NewClockFrom(func() time.Time { return wall }, func() time.Duration { return mono })
	for _, step := range []time.Duration{0, -5 * time.Millisecond, time.Hour, -time.Hour} {
		wall = time.UnixMilli(1_000_000).Add(step)
		if c.Now().UnixMilli() != 1_000_000 || c.Step() != step {
			t.Errorf("after a step of %v: %v, step %v", step, c.Now(), c.Step())
		}
	}
	mono = 1500 * time.Microsecond
	if c.Now().UnixMilli() != 1_000_001 {
		t.Errorf("got %v", c.Now())
	}
	c.Follow(-time.Hour)
	c.Follow(time.Second)
	if c.Now().UnixMilli() != 1_001_001 {
		t.Errorf("got %v after following", c.Now())
	}
}

// While running, IDs follow the monotonic clock, and a step forwards once it is steady.
func TestClockSteps(t *testing.T) {
	year2099 := 73 * 365 * 24 * time.Hour
	tests := []struct {
		name    string
		step    time.Duration
		follows bool
	}{
		{"-5ms", -5 * time.Millisecond, false},
		{"-1s", -time.Second, false},
		{"-1h", -time.Hour, false},
		{"+1s", time.Second, true},
		{"+1h", time.Hour, true},
		{"2099", year2099, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *world) {
				n := w.nodes[0]
				p := hold(t, n, 0)
				mustIssue(t, p, 100)
				n.skew.Add(int64(tt.step))
				for range 20 {
					mustIssue(t, p, 10)
					time.Sleep(500 * time.Millisecond)
				}
				followed := p.gen.clock.Now().UnixMilli() - time.Now().UnixMilli()
				if want := tt.step.Milliseconds(); tt.follows && followed != want || !tt.follows && followed != 0 {
					t.Errorf("IDs carry a time that is %d ms off", followed)
				}
				mustIssue(t, hold(t, w.nodes[1], 1), 100)
			})
		})
	}
}

func TestClockStrobes(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		n := w.nodes[0]
		p := hold(t, n, 0)
		for i := range 200 {
			n.skew.Store(int64(time.Duration(i%3-1) * 300 * time.Millisecond))
			mustIssue(t, p, 5)
			time.Sleep(150 * time.Millisecond)
		}
		if off := p.gen.clock.Now().UnixMilli() - time.Now().UnixMilli(); off != 0 {
			t.Errorf("a clock that jumps to and fro was followed by %d ms", off)
		}
	})
}

// Across a restart nothing is refused because of the node's own past: its worker ID is
// left alone, and another one is claimed.
func TestClockStepsAcrossRestart(t *testing.T) {
	for _, step := range []time.Duration{-5 * time.Millisecond, -time.Second, -time.Hour, time.Hour, 73 * 365 * 24 * time.Hour} {
		for _, clean := range []bool{true, false} {
			t.Run(step.String(), func(t *testing.T) {
				inBubble(t, 1, func(t *testing.T, w *world) {
					w.opts.Layouts[0].WorkerBits = 3
					n := w.nodes[0]
					for range 3 {
						p := n.start()
						mustIssue(t, p, 1000)
						if !clean {
							p.kill()
						} else if err := p.stop(); err != nil {
							t.Fatal(err)
						}
						n.skew.Add(int64(step))
						mustIssue(t, n.start(), 1000)
						n.proc.kill()
						n.skew.Add(-int64(step))
					}
				})
			})
		}
	}
}

func TestClockIsComparedWithRegistry(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.reg.Backend.SetClock(time.Now)
		hold(t, w.nodes[0], 0)
		n := w.nodes[1]
		for skew, want := range map[time.Duration]string{
			time.Hour:       "1h0m0s ahead of the worker registry's",
			-time.Hour:      "1h0m0s behind the worker registry's",
			6 * time.Second: "6s ahead of the worker registry's",
		} {
			n.skew.Store(int64(skew))
			p := n.start()
			awaitErr(t, p, want)
			if p.issue(1) != 0 {
				t.Error("issued")
			}
			p.kill()
		}
		n.skew.Store(int64(4 * time.Second))
		p := hold(t, n, 1)
		mustIssue(t, p, 10)
	})
}

func TestClockIsComparedWithPeers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, w *world) {
		w.reg.Backend.SetClock(time.Now)
		w.nodes[0].skew.Store(int64(-3 * time.Second))
		w.nodes[1].skew.Store(int64(-3 * time.Second))
		hold(t, w.nodes[0], 0)
		hold(t, w.nodes[1], 1)
		n := w.nodes[2]
		n.skew.Store(int64(3 * time.Second))
		p := n.start()
		awaitErr(t, p, "6s ahead of the median of 2 running nodes")
		p.kill()
		w.nodes[0].proc.kill()
		w.nodes[1].proc.kill()
		time.Sleep(time.Minute) // peers that are gone do not count
		hold(t, n, 2)
	})
}

// A step forwards that the registry's clock does not confirm is not followed.
func TestClockStepIsConfirmedByRegistry(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		var ahead atomic.Int64
		w.reg.Backend.SetClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		n := w.nodes[0]
		p := hold(t, n, 0)
		n.skew.Store(int64(time.Hour))
		time.Sleep(10 * time.Second)
		if off := p.gen.clock.Now().UnixMilli() - time.Now().UnixMilli(); off != 0 {
			t.Errorf("followed by %d ms", off)
		}
		ahead.Store(int64(time.Hour)) // it was this machine that was late
		time.Sleep(time.Minute)
		if off := p.gen.clock.Now().UnixMilli() - time.Now().UnixMilli(); off != time.Hour.Milliseconds() {
			t.Errorf("followed by %d ms", off)
		}
		mustIssue(t, p, 10)
	})
}

// A node whose clock is far ahead must not carry horizons away with it.
func TestLeaseDoesNotReachFarBeyondRegistryClock(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.reg.Backend.SetClock(time.Now)
		w.opts.Tolerance = 100 * 365 * 24 * time.Hour
		n := w.nodes[0]
		n.skew.Store(int64(time.Hour))
		awaitErr(t, n.start(), "a lease must not reach so far")
		n.proc.kill()
		n.skew.Store(int64(0))
		p := hold(t, n, 0)
		n.skew.Store(int64(time.Hour))
		time.Sleep(time.Minute)
		records, _ := w.reg.List(t.Context())
		if far := time.Until(records[0].Horizon); far > 2*w.opts.Horizon {
			t.Errorf("the horizon is %v ahead", far)
		}
		p.kill()
	})
}
