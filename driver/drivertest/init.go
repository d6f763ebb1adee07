package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"testing"
)

// initRounds is how often [TestInit] has several create one state: races are rare.
const initRounds = 20

// TestInit checks that of several concurrent creators, such as the containers of a new deployment,
// one succeeds, and that the others get an error that wraps [fs.ErrExist]. newState returns the
// call that creates one state; several goroutines call it at once.
func TestInit(t *testing.T, newState func(t testing.TB) func(context.Context) error) {
	for round := range initRounds {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), ruleTimeout)
			defer cancel()
			if err := initTogether(ctx, newState(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

func initTogether(ctx context.Context, create func(context.Context) error) error {
	errs := make([]error, 8)
	_ = together(len(errs), func(i int) error { errs[i] = create(ctx); return nil }) // no error
	created := 0
	for _, err := range append(errs, create(ctx)) {
		switch {
		case err == nil:
			created++
		case !errors.Is(err, fs.ErrExist):
			return fmt.Errorf("got error %w, want one that wraps fs.ErrExist", err)
		}
	}
	if created != 1 {
		return fmt.Errorf("%d calls created the state, want 1", created)
	}
	return nil
}
