package sim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A limit ends as a context with a deadline does, also for contexts made from it, whether or not
// somebody waits.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick, waiting := &limit{at: time.Now().Add(time.Second)}, &limit{at: time.Now().Add(time.Second)}
		child, cancel := context.WithCancel(waiting)
		defer cancel()
		time.Sleep(time.Second - time.Millisecond)
		if err := errors.Join(quick.Err(), waiting.Err(), child.Err()); err != nil {
			t.Errorf("before the deadline: %v", err)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		for _, ctx := range []context.Context{quick, waiting, child} {
			if at, ok := ctx.Deadline(); !errors.Is(ctx.Err(), context.DeadlineExceeded) || !ok || !at.Equal(time.Now()) {
				t.Errorf("after the deadline %v: %v", at, ctx.Err())
			}
		}
		<-quick.Done()
		stopped := &limit{at: time.Now().Add(time.Second)}
		child, cancel = context.WithCancel(stopped)
		defer cancel()
		stopped.stop()
		if !errors.Is(child.Err(), context.Canceled) {
			t.Errorf("after the end of the call: %v", child.Err())
		}
	})
}
