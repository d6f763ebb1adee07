package segment_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// tickets is a store that deals in single IDs, and lifts a counter when asked to.
type tickets struct {
	*drivertest.Faulty
	lifts []int64
	down  atomic.Bool // lifts fail
}

func (s *tickets) Advance(ctx context.Context, tag string, _ int64) (segment.Grant, error) {
	return s.Faulty.Advance(ctx, tag, 1)
}

func (s *tickets) Lift(ctx context.Context, tag, _ string, floor int64) error {
	s.lifts = append(s.lifts, floor)
	if s.down.Load() {
		return errDown
	}
	_, err := s.Alter(ctx, tag, segment.Change{MaxID: &floor})
	return err
}

// A counter that deals in single IDs is lifted at once: no Advance could move it far.
func TestGuardHasALifterLift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tickets{Faulty: newStore(t, 1, 1)}
		b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 50_000})
		defer b.Close(t.Context())
		var ranges drivertest.Ranges
		take := func() {
			got, err := b.Take(t.Context(), nil, 5)
			if err != nil {
				t.Fatal(err)
			}
			ranges.Add(got...)
			synctest.Wait()
		}
		for range 10 {
			take()
		}
		loseWrites(t, store.Faulty, 7)
		for range 10 {
			take()
		}
		if err := ranges.Check(); err != nil {
			t.Error(err)
		}
		if len(store.lifts) != 1 || store.lifts[0] < 50_000 || b.Stats().Regressions != 1 {
			t.Errorf("lifted to %v after %d regressions", store.lifts, b.Stats().Regressions)
		}
	})
}

// A failed lift fails the calls, with its reason, and nothing below it is issued.
func TestGuardFailedLift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &tickets{Faulty: newStore(t, 1, 1)}
		b := segment.NewBuffer(store, "order", &segment.Options{RegressionJump: 50_000})
		defer b.Close(t.Context())
		var ranges drivertest.Ranges
		take := func(n int) error {
			got, err := b.Take(t.Context(), nil, n)
			ranges.Add(got...)
			synctest.Wait()
			return err
		}
		for range 10 {
			wantError(t, take(1), nil)
		}
		loseWrites(t, store.Faulty, 7)
		store.down.Store(true)
		wantError(t, take(50), errDown)
		store.down.Store(false)
		time.Sleep(time.Minute)
		for range 10 {
			wantError(t, take(5), nil)
		}
		if err := ranges.Check(); err != nil {
			t.Error(err)
		}
	})
}
