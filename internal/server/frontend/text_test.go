package frontend_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/segment"
)

func TestText(t *testing.T) {
	refused := &leaf.StoreError{Err: errors.New("dial tcp 192.0.2.1:3306: connection refused")}
	late := &leaf.StoreError{Err: fmt.Errorf("db at 192.0.2.2: %w", context.DeadlineExceeded)}
	const no = "no usable answer (the log of the server says more)"
	for _, tt := range []struct {
		err  error
		want string
	}{
		{leaf.ErrUnknownTag, "unknown tag"},
		{refused, no},
		{fmt.Errorf("tag %q: %w: %w", "order", leaf.ErrExhausted, refused), `tag "order": no IDs left for the moment: ` + no},
		{fmt.Errorf("%w (%w)", late, refused), "context deadline exceeded (the log of the server says more) (" + no + ")"},
		{errors.Join(refused, errors.New("clock")), no + "\nclock"},
		{&leaf.StoreError{Err: fmt.Errorf("at 192.0.2.1: %w", segment.ErrNotCreated)}, "the store was not created (the log of the server says more)"},
		{&leaf.StoreError{Err: fmt.Errorf("at 192.0.2.1: %w", leaf.ErrTagExists)}, "tag exists (the log of the server says more)"},
		{&leaf.StoreError{Err: errors.New("")}, ""},
	} {
		if got := frontend.Text(tt.err); got != tt.want {
			t.Errorf("%q: told %q, want %q", tt.err, got, tt.want)
		}
	}
}
