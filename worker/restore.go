package worker

import (
	"maps"
	"slices"
	"time"
)

const (
	// restoreHorizon is the least horizon that holders may have had; see [Options].
	restoreHorizon = 30 * time.Minute

	// restoreWait is more than any holder without a record was ahead of the time: the largest max_ahead
	// and the tolerance between clocks.
	restoreWait = time.Minute + 10*time.Second

	// maxFenceBits bounds the records that stand in for lost leases of one pool. A larger pool has to
	// wait for them.
	maxFenceBits = 12
)

// Restored returns the records that a registry needs instead of a backup of it. Holders have written
// unknown records since the backup. So no record has a holder, and each horizon is at least
// now and the longest lease that the backup shows. Each unused worker ID of a pool gets such a record
// too: a program may hold it. Servers must have stopped before now, and may start wait after it: what
// has no record then, has run ahead of the time by less.
func Restored(backup []Record, now time.Time) (restored []Record, wait time.Duration) {
	longest := restoreHorizon
	for _, r := range backup {
		longest = max(longest, r.Pool.MaxTTL)
		if !r.Seen.IsZero() && r.Held() {
			longest = max(longest, r.Horizon.Sub(r.Seen))
		}
	}
	wait = restoreWait
	records := make(map[int64]Record)
	for _, r := range backup {
		records[r.Worker] = r
	}
	for _, definition := range backup {
		if definition.Pool == (Pool{}) {
			continue
		}
		if definition.Pool.Layout.WorkerBits > maxFenceBits {
			wait = max(wait, definition.Pool.MaxTTL+restoreWait)
			continue
		}
		first := definition.Worker &^ poolDefinition
		for id := range definition.Pool.Layout.MaxWorker() + 1 {
			if _, ok := records[first|id]; !ok {
				records[first|id] = Record{Worker: first | id, Term: 1}
			}
		}
	}
	floor := now.Add(longest).Truncate(time.Millisecond).Add(time.Millisecond)
	for _, id := range slices.Sorted(maps.Keys(records)) {
		r := records[id]
		r.Version = ""
		if r.Pool == (Pool{}) {
			r.Instance, r.Floor = Instance{}, time.Time{}
			r.Term++
			if r.Horizon.Before(floor) {
				r.Horizon = floor
			}
			r.Owner, r.Seen, r.Offset = "", time.Time{}, 0
			r.Incarnation, r.Since = "", time.Time{}
		}
		restored = append(restored, r)
	}
	return restored, wait
}
