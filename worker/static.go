package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// Static is the registry of one worker ID that an operator chose, in a file on this
// machine: it keeps the lease across restarts, so that nothing is issued twice by the
// processes that use the file. The operator must see to it that no other file, here or on
// another machine, has the same ID.
type Static struct {
	worker int64

	mu     sync.Mutex
	slots  slots
	record Record
}

var (
	_ Registry = (*Static)(nil)
	_ Assigner = (*Static)(nil)
)

// OpenStatic returns the registry of one worker ID in f, which must be locked against
// other processes and stay open and locked while it is used. An empty file may replace one
// lost with its machine, so the registry holds the worker ID back for hold. Hold must cover the
// mark of any holder killed a moment ago: the largest MaxAhead that holders of this
// ID ever had, 2 s more, and a tick of their coarsest layout.
func OpenStatic(f File, worker int64, hold time.Duration) (*Static, error) {
	if worker < 0 {
		return nil, fmt.Errorf("%w: worker ID %d", leaf.ErrInvalid, worker)
	}
	s := &Static{worker: worker, slots: slots{file: f, size: recordSlot, version: staticVersion}, record: Record{Worker: worker}}
	s.record.Horizon = milliUp(time.Now().Add(hold))
	text, err := s.slots.read()
	if errors.Is(err, errDamaged) {
		return nil, fmt.Errorf("the record of worker ID %d: %w: times up to %v ahead of the clock may have been issued: delete the file when that long has passed",
			worker, err, DefaultHorizon)
	}
	if err == nil && text != nil {
		s.record = Record{Worker: worker}
		err = s.record.UnmarshalText(text)
	}
	if err != nil {
		return nil, fmt.Errorf("the record of worker ID %d: %w", worker, err)
	}
	return s, nil
}

// chosen returns the worker ID, also of types that embed s.
func (s *Static) chosen() int64 { return s.worker }

// Assign returns the worker ID.
func (s *Static) Assign(_ context.Context, limit int64) (int64, error) {
	if s.worker > limit {
		return 0, fmt.Errorf("%w: worker ID %d: the layout holds 0 … %d", leaf.ErrInvalid, s.worker, limit)
	}
	return s.worker, nil
}

// Load returns the record.
func (s *Static) Load(ctx context.Context, worker int64) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if worker != s.worker {
		return Record{Worker: worker}, nil
	}
	return s.record, nil
}

// Swap replaces the record.
func (s *Static) Swap(ctx context.Context, old, next Record) (Record, error) {
	if err := ctx.Err(); err != nil {
		return Record{}, err
	}
	if old.Worker != s.worker || next.Worker != s.worker {
		return Record{}, fmt.Errorf("%w: worker IDs %d and %d: the only one here is %d", leaf.ErrInvalid, old.Worker, next.Worker, s.worker)
	}
	text, err := next.MarshalText()
	if err != nil {
		return Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.record.Equal(old) {
		return Record{}, ErrConflict
	}
	if err := s.slots.write(text); err != nil {
		return Record{}, err
	}
	s.record = next
	return next, nil
}

// List returns the record, if it was ever written.
func (s *Static) List(ctx context.Context) ([]Record, error) {
	r, err := s.Load(ctx, s.worker)
	if err != nil || r.IsZero() {
		return nil, err
	}
	return []Record{r}, nil
}

// Clock returns the zero Time: the clock is this machine's.
func (s *Static) Clock(ctx context.Context) (time.Time, error) { return time.Time{}, ctx.Err() }
