package segment

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
)

// A countdown is a store whose counter can be lowered.
type countdown struct{ next int64 }

func (c *countdown) Advance(context.Context, string, int64) (Grant, error) {
	c.next += 10
	return Grant{Range: leaf.Range{Start: c.next - 10, End: c.next}, Step: 10}, nil
}

func (c *countdown) Tags(context.Context) iter.Seq2[Tag, error] {
	return func(yield func(Tag, error) bool) { yield(Tag{Name: "order", Step: 10}, nil) }
}

// The first call for a tag meets a Forget of it: no buffer has IDs while the operator lowers the
// counter.
func TestForgetBesideFirstCall(t *testing.T) {
	store := &countdown{next: 1000}
	set := NewSet(store, nil)
	defer set.Close(context.Background())
	<-set.Ready()
	set.tags.mu.Lock()
	forgot, lowering, lower := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		forgot <- set.Server().Forget("order", func() error {
			close(lowering)
			<-lower
			store.next = 0
			return nil
		})
	}()
	const meanwhile = 100 * time.Millisecond // a machine that takes longer sees less
	time.Sleep(meanwhile)
	opened := make(chan *Buffer)
	go func() {
		b, err := set.open(t.Context(), "order")
		if err != nil {
			t.Error(err)
		}
		opened <- b
	}()
	time.Sleep(meanwhile)
	set.tags.mu.Unlock()
	<-lowering
	if id, err := (<-opened).Next(t.Context()); !errors.Is(err, leaf.ErrExhausted) {
		t.Errorf("while the counter is being lowered: %d, %v", id, err)
	}
	close(lower)
	if err := <-forgot; err != nil {
		t.Fatal(err)
	}
	if id, err := set.Next(t.Context(), "order"); err != nil || id != 0 {
		t.Errorf("behind the change to 0: %d, %v", id, err)
	}
}

// A slowStrict is a store of a tag with strict order, whose calls for it wait.
type slowStrict struct {
	countdown
	called, answer chan struct{}
}

func (s *slowStrict) Advance(context.Context, string, int64) (Grant, error) {
	return Grant{}, ErrStrict
}

func (s *slowStrict) AdvanceStrict(_ context.Context, _, _ string, n int64) (Grant, error) {
	s.called <- struct{}{}
	<-s.answer
	start := s.next
	s.next += n
	return Grant{Range: leaf.Range{Start: start, End: start + n}, Step: 10}, nil
}

// Forget and Close wait for a call of a tag with strict order: else its grant, from the lowered
// counter, would look like that of a store which lost writes.
func TestStrictCallsAreWaitedFor(t *testing.T) {
	for name, end := range map[string]func(context.Context, *Set) error{
		"forget": func(_ context.Context, s *Set) error { return s.Server().Forget("order", func() error { return nil }) },
		"close":  func(ctx context.Context, s *Set) error { return s.Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &slowStrict{countdown{1000}, make(chan struct{}), make(chan struct{})}
				set := NewSet(store, nil)
				defer set.Close(context.Background())
				<-set.Ready()
				taken, ended := make(chan error, 1), make(chan error, 1)
				go func() { _, err := set.Next(t.Context(), "order"); taken <- err }()
				<-store.called
				go func() { ended <- end(t.Context(), set) }()
				synctest.Wait()
				select {
				case <-ended:
					t.Error("it did not wait for the call in flight")
				default:
				}
				close(store.answer)
				if err := errors.Join(<-taken, <-ended); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
