package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// maxFree is the number of candidates: more than this machine has processes with other registries,
// whose worker IDs are locked.
const maxFree = 1024

// candidates returns the worker IDs that may be claimed at the time now, the best first:
// those without a holder before those whose lease ran out, low ones before high ones. Of a registry
// of this machine the last one held comes first: processes with other registries have the others.
func (k *Keeper) candidates(ctx context.Context, v view, now time.Time) ([]int64, error) {
	if a, ok := k.reg.(Assigner); ok {
		return k.assigned(ctx, a, v, now)
	}
	ahead := time.Duration(0)
	if k.sharesMachine(v.own) {
		ahead = k.opts.LeastAhead // no generator begins before
	}
	ids, first := unused(v, 0, k.max, now, ahead)
	if len(ids) == 0 {
		return nil, &notYet{first, fmt.Errorf("%w: all %d worker IDs are in use; the first lease runs out at %s, unless it is extended",
			ErrNoneFree, k.max+1, first.UTC().Format(time.RFC3339))}
	}
	if ahead > 0 {
		moveLastHeld(ids, v)
	}
	spread(ids)
	return ids, nil
}

// moveLastHeld moves the worker ID without a holder that was held last to the front.
func moveLastHeld(ids []int64, v view) {
	last := 0
	for i, id := range ids {
		if r := v.records[id]; !r.Held() && r.Horizon.After(v.records[ids[last]].Horizon) {
			last = i
		}
	}
	id := ids[last]
	copy(ids[1:], ids[:last])
	ids[0] = id
}

// spread orders candidates. All nodes try the first, so that few nodes have low worker IDs. Each
// candidate lost to another node shows a crowd, so the next one is drawn from twice as many:
// n nodes that start at once need about log n candidates each.
func spread(ids []int64) {
	for i := 1; i < min(len(ids), maxRivals); i++ {
		j := i + rand.IntN(min(len(ids), maxRivals<<i)-i)
		ids[i], ids[j] = ids[j], ids[i]
	}
}

// unused returns the cells from base up to base + limit that a node may claim at the time now: those
// without a holder before those whose lease ran out, low ones before high ones. Those without a holder
// may be claimed ahead before their horizon. Without such cells first is the earliest end of a lease.
func unused(v view, base, limit int64, now time.Time, ahead time.Duration) (cells []int64, first time.Time) {
	var expired []int64
	for cell := base; cell <= base+limit && len(cells) < maxFree; cell++ {
		r := v.records[cell]
		switch {
		case !r.Held() && !r.Horizon.After(now.Add(ahead)):
			cells = append(cells, cell)
		case r.Horizon.After(now):
			if first.IsZero() || r.Horizon.Before(first) {
				first = r.Horizon
			}
		default:
			expired = append(expired, cell)
		}
	}
	return append(cells, expired...), first
}

// A notYet is the error of a claim that may succeed later.
type notYet struct {
	at time.Time
	error
}

func (e *notYet) Unwrap() error { return e.error }

func (k *Keeper) assigned(ctx context.Context, a Assigner, v view, now time.Time) ([]int64, error) {
	id, err := ask(ctx, k, func(ctx context.Context) (int64, error) { return a.Assign(ctx, k.max) })
	if err != nil {
		return nil, fmt.Errorf("get the worker ID that is assigned to this node: %w", err)
	}
	if r := v.records[id]; r.Horizon.After(now) {
		why := ErrWaiting
		if r.Horizon.After(now.Add(2 * k.opts.Horizon)) { // further than a claim by this clock
			why = ErrFarAhead
		}
		return nil, &notYet{r.Horizon, fmt.Errorf("%w: worker ID %d is assigned to this node, but times up to %s may have been issued under it by %s",
			why, id, r.Horizon.UTC().Format(time.RFC3339Nano), ownerName(r.Owner))}
	}
	return []int64{id}, nil
}
