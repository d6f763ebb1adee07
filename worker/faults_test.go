package worker_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/worker"
)

func TestRegistryAway(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Horizon, w.opts.Extend = 0, 0
		p := hold(t, w.nodes[0], 0)
		w.down.Store(true)
		for range 20 * 60 {
			mustIssue(t, p, 5)
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		if got := p.issue(1); got != 0 {
			t.Error("issued beyond the horizon")
		}
		awaitErr(t, p, "ran out at")
		w.down.Store(false)
		awaitHeld(t, p, 0)
		mustIssue(t, p, 5)
	})
}

func TestLostRepliesOfClaims(t *testing.T) {
	for name, fault := range map[string]swapFault{"request lost": swapLost, "reply lost": replyLost, "request late": swapLate} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *world) {
				var calls atomic.Int64
				w.plan(func(_, _ worker.Record) swapFault {
					if calls.Add(1) == 1 {
						return fault
					}
					return swapWorks
				})
				p := hold(t, w.nodes[0], 0)
				mustIssue(t, p, 100)
				w.arrive()
				mustIssue(t, hold(t, w.nodes[1], 1), 100)
				time.Sleep(5 * time.Second)
				mustIssue(t, p, 100)
			})
		})
	}
}

// A read may show a swap without an answer that the registry then loses: a database that crashes
// before it has synced. Such a swap gives no worker ID, and makes no lease longer.
func TestReadsProveNothing(t *testing.T) {
	first := func(fault swapFault) func(_, next worker.Record) swapFault {
		return func(_, next worker.Record) swapFault {
			if next.Owner == "n0.1" {
				return fault
			}
			return swapWorks
		}
	}
	t.Run("claim", func(t *testing.T) {
		inBubble(t, 2, func(t *testing.T, w *world) {
			before := w.reg.Backend.Snapshot()
			w.plan(first(replyLost))
			p := w.nodes[0].start()
			time.Sleep(10 * time.Second)
			if n := p.issue(100); n > 0 {
				t.Errorf("%d times were issued, and the registry had acknowledged nothing", n)
			}
			w.reg.Backend.Restore(before)
			mustIssue(t, hold(t, w.nodes[1], 0), 100)
		})
	})
	t.Run("extension", func(t *testing.T) {
		inBubble(t, 2, func(t *testing.T, w *world) {
			w.opts.Layouts[0].WorkerBits = 0
			p := hold(t, w.nodes[0], 0)
			before := w.reg.Backend.Snapshot()
			w.plan(first(replyLost))
			for range 40 { // longer than a lease
				p.issue(5)
				time.Sleep(time.Second)
			}
			w.reg.Backend.Restore(before)
			w.plan(first(swapLost)) // or it could be the first to claim the only worker ID again
			q := hold(t, w.nodes[1], 0)
			p.issue(100)
			mustIssue(t, q, 100)
		})
	})
}

func TestLateReleaseDoesNothing(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 100)
		w.plan(func(_, next worker.Record) swapFault {
			if !next.Held() {
				return swapLate
			}
			return swapWorks
		})
		if err := p.stop(); !errors.Is(err, errNetwork) {
			t.Fatalf("got error %v of a release whose answer is not known", err)
		}
		time.Sleep(time.Minute)
		q := hold(t, w.nodes[1], 0)
		mustIssue(t, q, 100)
		w.arrive()
		time.Sleep(5 * time.Second)
		mustIssue(t, q, 100)
	})
}

func TestRegistryLostWrites(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		before := w.reg.Backend.Snapshot()
		p := hold(t, w.nodes[0], 0)
		claimed := w.reg.Backend.Snapshot()
		mustIssue(t, p, 100)
		time.Sleep(10 * time.Second)
		for i, snapshot := range []memory.Snapshot{claimed, before} {
			w.reg.Backend.Restore(snapshot)
			time.Sleep(5 * time.Second)
			mustIssue(t, p, 100)
			records, _ := w.reg.List(t.Context())
			if len(records) != 1 || records[0].Horizon.Before(time.Now().Add(25*time.Second)) {
				t.Errorf("the record was not put back: %+v", records)
			}
			if got := p.keeper.Status().PutBacks; got != int64(i+1) {
				t.Errorf("counted %d, want %d", got, i+1)
			}
		}
	})
}

// A registry loses a claim, and deals the worker ID out again before the first holder looks. The
// first holder's IDs until then are below the floor of the second one.
func TestRegistryLostClaimAndAnotherClaimed(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.lossy.Store(true)
		before := w.reg.Backend.Snapshot()
		p := w.nodes[0].start()
		if p.issue(1) != 0 {
			t.Fatal("issued before the claim counts")
		}
		time.Sleep(15 * time.Second)
		awaitHeld(t, p, 0)
		mustIssue(t, p, 2000)
		time.Sleep(10 * time.Millisecond)
		p.pause() // its generator goes on
		w.reg.Backend.Restore(before)
		q := w.nodes[1].start()
		for range 20 {
			p.issue(100)
			q.issue(100)
		}
		p.resume()
		awaitLost(t, p)
		time.Sleep(15 * time.Second)
		mustIssue(t, q, 100)
		awaitHeld(t, p, 1)
		mustIssue(t, p, 100)
	})
}

func TestRegistryLostWritesWhileStopped(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		before := w.reg.Backend.Snapshot()
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 100)
		p.kill()
		w.reg.Backend.Restore(before)
		hold(t, w.nodes[0], 1) // 0 was put back at its mark
	})
}

// The outcome of a claim is unknown: the keeper repeats the same claim, and recognises its own
// record.
func TestClaimOfUnknownOutcome(t *testing.T) {
	for name, fault := range map[string]swapFault{"lost": swapLost, "written": replyLost} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				w.opts.Layouts[0].WorkerBits = 0
				w.plan(func(_, _ worker.Record) swapFault {
					w.fault.Store(nil)
					w.down.Store(true)
					return fault
				})
				p := w.nodes[0].start()
				awaitErr(t, p, "no answer within 1s")
				w.down.Store(false)
				back := time.Now()
				awaitHeld(t, p, 0)
				if took := time.Since(back); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
				if term := p.keeper.Status().Term; term != 1 {
					t.Errorf("got term %d", term)
				}
				mustIssue(t, p, 100)
			})
		})
	}
}

// The registry forgets a claim, and the previous, merely paused holder extends.
func TestEarlierHolderCameBack(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		p := hold(t, w.nodes[0], 0)
		p.pause()
		time.Sleep(time.Minute)
		before := w.reg.Backend.Snapshot()
		q := hold(t, w.nodes[1], 0)
		q.pause()
		time.Sleep(10 * time.Millisecond)
		w.reg.Backend.Restore(before)
		p.resume()
		time.Sleep(5 * time.Second)
		q.resume()
		awaitLost(t, q)
		awaitHeld(t, p, 0)
	})
}

// The registry reports another node just as the process stops: the hand-back must not go below the
// floor of issued IDs.
func TestTakenWhenStopping(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		p := hold(t, w.nodes[0], 0)
		mustIssue(t, p, 1000)
		w.plan(func(_, _ worker.Record) swapFault {
			w.fault.Store(nil)
			p.cancel()
			return foreign
		})
		<-p.ended
		p.node.proc = nil
		if records, _ := w.reg.List(t.Context()); !records[0].Held() {
			t.Errorf("handed back: %+v", records[0])
		}
	})
}

// A registry that noticed another node still holds our record: the worker ID is not left
// alone until its horizon.
func TestTakenByWhoKnowsNoLease(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		w.opts.Horizon = 30 * time.Minute
		p := hold(t, w.nodes[0], 0)
		p.gen.reserve(1000, atCursor)
		p.gen.answer()
		w.plan(func(_, _ worker.Record) swapFault {
			w.fault.Store(nil)
			return foreign
		})
		awaitLost(t, p)
		back := time.Now()
		awaitHeld(t, p, 0)
		if took := time.Since(back); took > 5*time.Second {
			t.Errorf("held again after %v", took)
		}
		p.gen.reserve(1000, atCursor)
		p.gen.answer()
	})
}

// The same for a while without hand-backs: the process waits for its own lease.
func TestTakenForAWhile(t *testing.T) {
	for name, change := range map[string]func(*worker.Options){
		"":                     func(*worker.Options) {},
		"without a state file": func(o *worker.Options) { o.State = nil },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, w *world) {
				w.opts.Layouts[0].WorkerBits = 0
				w.opts.Horizon = 30 * time.Minute
				p := hold(t, w.nodes[0], 0, change)
				p.gen.reserve(1000, atCursor)
				p.gen.answer()
				w.plan(func(_, _ worker.Record) swapFault { return foreign })
				awaitLost(t, p)
				time.Sleep(5 * time.Minute)
				if s := p.keeper.Status(); s.Held {
					t.Errorf("it holds a worker ID that others use: %+v", s)
				}
				w.fault.Store(nil)
				back := time.Now()
				awaitHeld(t, p, 0)
				if took := time.Since(back); took > 6*time.Second {
					t.Errorf("held again after %v", took)
				}
				p.gen.reserve(1000, atCursor)
				p.gen.answer()
			})
		})
	}
}

// A hand-back that failed is tried again, and does not bring the lease in the file back.
func TestFailedHandBackIsRepeated(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, w *world) {
		w.opts.Layouts[0].WorkerBits = 0
		w.opts.Horizon = 30 * time.Minute
		n := w.nodes[0]
		p := hold(t, n, 0)
		mustIssue(t, p, 10)
		p.kill()
		w.plan(func(_, _ worker.Record) swapFault { return swapLost })
		p = n.start()
		time.Sleep(10 * time.Second)
		w.down.Store(true)
		time.Sleep(10 * time.Second)
		if s := p.keeper.Status(); s.Held {
			t.Errorf("it goes on with a lease that it has tried to hand back: %+v", s)
		}
		w.down.Store(false)
		w.fault.Store(nil)
		back := time.Now()
		awaitHeld(t, p, 0)
		if took := time.Since(back); took > 6*time.Second {
			t.Errorf("held after %v", took)
		}
		mustIssue(t, p, 10)
	})
}

// A registry is restored from a backup under a running server, and another one claims its worker
// ID: the log names the times of the IDs that may exist twice. A lease that had run out is no such
// case.
func TestRestoredRegistryIsLogged(t *testing.T) {
	for name, restored := range map[string]bool{"restored": true, "ran out": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, w *world) {
				w.opts.Layouts[0].WorkerBits = 0
				var log bytes.Buffer // read once p has stopped
				before := w.reg.Backend.Snapshot()
				p := hold(t, w.nodes[0], 0, func(o *worker.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				p.pause() // it issues nothing meanwhile
				if restored {
					w.reg.Backend.Restore(before)
				} else {
					time.Sleep(2 * w.opts.Horizon)
				}
				q := hold(t, w.nodes[1], 0)
				p.resume()
				awaitErr(t, p, "all 1 worker IDs are in use")
				mustIssue(t, q, 10)
				if err := p.stop(); err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(log.String(), "IDs of these times may exist twice"); got != restored {
					t.Errorf("logged: %v, want %v:\n%s", got, restored, log.String())
				}
			})
		})
	}
}
