package kv

import (
	"context"
	"errors"

	sabotage "github.com/leaf-id/leaf"
)

func sabotaged(b Backend) Backend {
	switch sabotage.Rule {
	case "CAS", "outcome":
		return brokenBackend{b}
	}
	return b
}

// A brokenBackend does not swap as a backend has to.
type brokenBackend struct{ Backend }

// Swap writes a cell.
func (b brokenBackend) Swap(ctx context.Context, old Cell, value string) (Cell, error) {
	if sabotage.Broken("CAS") {
		now, err := b.Get(ctx, old.Key)
		if err != nil {
			return Cell{}, err
		}
		old = now
	}
	now, err := b.Backend.Swap(ctx, old, value)
	if sabotage.Broken("outcome") && err != nil && !errors.Is(err, ErrConflict) {
		return Cell{Key: old.Key, Value: value, Version: "unknown", Server: old.Server}, nil
	}
	return now, err
}
