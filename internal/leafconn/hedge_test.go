package leafconn

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A numbered answer is for one caller, and has a number of its own.
type numbered struct{ caller, number int }

// A servant answers calls late, also those without a waiting caller.
type servant struct {
	mu     sync.Mutex
	issued int
	given  map[int]bool
}

func (s *servant) call(caller int, most time.Duration) func(context.Context, *server) (numbered, error) {
	return func(context.Context, *server) (numbered, error) {
		time.Sleep(rand.N(most))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.issued++
		return numbered{caller, s.issued}, nil
	}
}

// give notes a caller's result.
func (s *servant) give(t *testing.T, caller int, got numbered) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.caller != caller || s.given[got.number] {
		t.Errorf("caller %d received %+v, which is another one's or came before: %v", caller, got, s.given[got.number])
	}
	s.given[got.number] = true
}

// An answer goes to the call that asked for it, once, however late it is.
func TestHedgedAnswersGoToTheirCall(t *testing.T) {
	const callers, calls = 50, 20
	for name, hedged := range map[string]bool{"hedged": true, "one server at a time": false} {
		synctest.Test(t, func(t *testing.T) {
			c := openThree(t)
			hedging := never
			if hedged {
				hedging = c.hedge
			}
			s := &servant{given: map[int]bool{}}
			var wg sync.WaitGroup
			for caller := range callers {
				wg.Go(func() {
					for range calls {
						got, err := inTurn(t.Context(), c, hedging, s.call(caller, 4*defaultHedge))
						if err != nil {
							t.Error(err)
						}
						s.give(t, caller, got)
					}
				})
			}
			wg.Wait()
			time.Sleep(4 * defaultHedge) // for the late answers
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.given) != callers*calls || hedged != (s.issued > len(s.given)) {
				t.Errorf("%s: %d answers of %d were given, to %d calls", name, len(s.given), s.issued, callers*calls)
			}
		})
	}
}

// A silent server costs a call no more than the time after which it asks the next one.
func TestHedgeAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		silent := c.order()[0]
		begin := time.Now()
		_, err := inTurn(t.Context(), c, c.hedge, func(ctx context.Context, s *server) (numbered, error) {
			if s == silent {
				<-ctx.Done()
			}
			return numbered{}, ctx.Err()
		})
		if took := time.Since(begin); err != nil || took != defaultHedge {
			t.Errorf("answered after %v, %v", took, err)
		}
	})
}

// Of servers that are asked one at a time, each silent one costs the call a turn, and comes last from
// then on. The last one has the remaining time.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		last := c.order()[2]
		answer := func(ctx context.Context, s *server) (numbered, error) {
			if s != last {
				<-ctx.Done()
				return numbered{}, connect.NewError(connect.CodeDeadlineExceeded, ctx.Err())
			}
			time.Sleep(time.Second / 2)
			return numbered{}, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), segment.DefaultCallTimeout)
		defer cancel()
		begin := time.Now()
		_, err := inTurn(ctx, c, never, answer)
		if took := time.Since(begin); err != nil || took != 2*turn+time.Second/2 || c.order()[0] != last {
			t.Errorf("answered after %v, %v, and first now: %v", took, err, c.order()[0] == last)
		}
	})
}

// A frozen server holds up no more than a turn the answer that the known store lacks a tag.
func TestUnknownBesideFrozen(t *testing.T) {
	unknown := wire(t, refuses(connect.CodeNotFound, "UNKNOWN_TAG"))
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		first := c.order()[0]
		first.proven.Store(true)
		for name, hedging := range map[string]func() <-chan time.Time{"in turn": never, "hedged": c.hedge} {
			begin := time.Now()
			_, err := inTurn(context.WithoutCancel(t.Context()), c, hedging, func(ctx context.Context, s *server) (numbered, error) {
				if s == first {
					return numbered{}, unknown
				}
				<-ctx.Done()
				return numbered{}, connect.NewError(connect.CodeDeadlineExceeded, ctx.Err())
			})
			if took := time.Since(begin); !errors.Is(err, leaf.ErrUnknownTag) || took != turn {
				t.Errorf("%s: %v after %v", name, err, took)
			}
		}
	})
}

// Once a server has answered, the calls to the others end.
func TestAnswerEndsOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		first := c.order()[0]
		ended := make(chan error, 1)
		_, err := inTurn(context.WithoutCancel(t.Context()), c, c.hedge, func(ctx context.Context, s *server) (numbered, error) {
			if s == first {
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				ended <- ctx.Err()
			}
			return numbered{}, nil
		})
		if other := <-ended; err != nil || !errors.Is(other, context.Canceled) {
			t.Errorf("%v, and the other call ended with %v", err, other)
		}
	})
}

// Each silent server costs the time to the next one; after the last one the call waits.
func TestHedgeAsksAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openThree(t)
		order := c.order()
		begin := time.Now()
		_, err := inTurn(t.Context(), c, c.hedge, func(ctx context.Context, s *server) (numbered, error) {
			if s != order[2] {
				<-ctx.Done()
				return numbered{}, ctx.Err()
			}
			time.Sleep(time.Hour)
			return numbered{}, nil
		})
		if took := time.Since(begin); err != nil || took != 2*defaultHedge+time.Hour {
			t.Errorf("answered after %v, %v", took, err)
		}
	})
}

func openThree(t *testing.T) *Conn {
	c, err := Open([]string{"http://a:1", "http://b:1", "http://c:1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
