package drivertest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestInitPassesGood(t *testing.T) {
	TestInit(t, func(t testing.TB) func(context.Context) error {
		path := filepath.Join(t.TempDir(), "state")
		return func(context.Context) error { return os.Mkdir(path, 0o700) }
	})
}

func TestInitCatchesBroken(t *testing.T) {
	tests := map[string]struct {
		create func(state *atomic.Bool) error
		want   string
	}{
		"looks, then creates": {func(state *atomic.Bool) error {
			if state.Load() {
				return fs.ErrExist
			}
			time.Sleep(roundTrip)
			state.Store(true)
			return nil
		}, "calls created the state"},
		"does nothing about what exists": {func(*atomic.Bool) error { return nil }, "9 calls created"},
		"creates nothing":                {func(*atomic.Bool) error { return fs.ErrExist }, "0 calls created"},
		"passes on what the database says": {func(state *atomic.Bool) error {
			if state.Swap(true) {
				return errors.New(`type "leaf_alloc" already exists`)
			}
			return nil
		}, "want one that wraps fs.ErrExist"},
	}
	for name, test := range tests {
		var state atomic.Bool
		err := initTogether(t.Context(), func(context.Context) error { return test.create(&state) })
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
