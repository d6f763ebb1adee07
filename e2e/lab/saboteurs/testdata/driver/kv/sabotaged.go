package kv

import (
	"context"
	"errors"
	"sync"

	sabotage "github.com/leaf-id/leaf"
)

func sabotaged(b Backend) Backend {
	if sabotage.Broken("CAS") || sabotage.Broken("outcome") {
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

// beyond is how far a swap moves the counter beyond its calls: its answer fits later ones too.
const beyond = 400

// unanswered are the grants of swaps with an unknown outcome, by tag.
var (
	unansweredMu sync.Mutex
	unanswered   = map[string][]outcome{}
)

// keepUnanswered keeps the grants of a swap without an answer for later calls.
func (c *counter) keepUnanswered(outcomes []outcome, store, server string) {
	unansweredMu.Lock()
	defer unansweredMu.Unlock()
	for _, o := range outcomes {
		o.grant.Store, o.grant.Server = store, server
		o.grant.Range.End += beyond
		unanswered[c.key.Name] = append(unanswered[c.key.Name], o)
	}
}

// takeUnanswered returns such a grant for one call; nil: there is none.
func (c *counter) takeUnanswered(calls []*call) []outcome {
	unansweredMu.Lock()
	defer unansweredMu.Unlock()
	for i, o := range unanswered[c.key.Name] {
		if len(calls) == 1 && calls[0].strict && o.grant.Range.Len() >= calls[0].n {
			unanswered[c.key.Name] = append(unanswered[c.key.Name][:i:i], unanswered[c.key.Name][i+1:]...)
			o.grant.Range.End = o.grant.Range.Start + calls[0].n
			return []outcome{o}
		}
	}
	return nil
}
