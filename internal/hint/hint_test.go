package hint_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string // part of the hint
	}{
		{segment.ErrNotCreated, "leaf init --store"},
		{worker.ErrNotCreated, "leaf init --workers"},
		{worker.ErrNoneFree, "leaf worker list"},
		{worker.ErrFarAhead, "leaf worker free"},
		{worker.ErrClaimDelay, "claim_delay=DURATION"},
	} {
		if got := hint.Of(fmt.Errorf("open: %w", tt.err)); !strings.Contains(got, tt.want) {
			t.Errorf("hint.Of(%v) = %q, want it to name %q", tt.err, got, tt.want)
		}
	}
	if got := hint.Of(errors.New("connection refused")); got != "" {
		t.Errorf("a hint about an unknown error: %q", got)
	}
}

func TestHandler(t *testing.T) {
	var out strings.Builder
	log := slog.New(hint.Handler(slog.NewTextHandler(&out, nil))).With("store", "main")
	log.Warn("the store is unavailable", "tag", "order", "err", fmt.Errorf("read: %w", segment.ErrNotCreated))
	if got := out.String(); !strings.Contains(got, `hint="create it with 'leaf init`) || !strings.Contains(got, "store=main") {
		t.Errorf("logged %s", got)
	}
	out.Reset()
	log.Warn("the store is unavailable", "err", errors.New("connection refused"))
	if got := out.String(); strings.Contains(got, "hint=") {
		t.Errorf("a hint where none is known: %s", got)
	}
}
