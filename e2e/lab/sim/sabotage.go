package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

func (w *world) sabotaged(rule string) bool { return w.sabotage == rule }

// unrecorded reports whether a saboteur writes to the store outside the recorded calls.
func (w *world) unrecorded() bool {
	return w.sabotaged("R1 condition") || w.sabotaged("R2 set") || w.sabotaged("R5 missing")
}

// backend is the way of a process to the database.
func (w *world) backend(p *process) kv.Backend {
	b := &port{p, w.db}
	switch w.sabotage {
	case "W11 registry":
		if p.own == nil {
			p.own = newDatabase(w)
			if err := kv.New(direct{p.own.cells, p.own}, nil).InitRegistry(context.Background()); err != nil {
				panic(err) // the memory is always there
			}
		}
		return &port{p, p.own}
	case "CAS", "CAS of records", "outcome", "W5 expiry":
		return &brokenPort{b}
	}
	return b
}

// A brokenPort is a port to a database that breaks its promises.
type brokenPort struct{ *port }

// expiry is after how long without a write the broken database forgets a record.
const expiry = 10 * time.Second

// Get returns the cell of a key, unless it has expired.
func (b *brokenPort) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	b.expire()
	return b.port.Get(ctx, key)
}

// Swap writes a cell.
func (b *brokenPort) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	b.expire()
	if strings.HasPrefix(b.p.w.sabotage, "CAS") {
		now, err := b.port.Get(ctx, old.Key)
		if err != nil {
			return kv.Cell{}, err
		}
		old.Version = now.Version
	}
	now, err := b.port.Swap(ctx, old, value)
	if b.p.w.sabotaged("outcome") && err != nil && !errors.Is(err, kv.ErrConflict) {
		return kv.Cell{Key: old.Key, Value: value, Version: "unknown", Server: old.Server}, nil
	}
	if err == nil {
		b.db.mu.Lock()
		b.db.written[old.Key] = time.Now()
		b.db.mu.Unlock()
	}
	return now, err
}

// expire removes old records of workers.
func (b *brokenPort) expire() {
	if !b.p.w.sabotaged("W5 expiry") {
		return
	}
	b.db.mu.Lock()
	defer b.db.mu.Unlock()
	cells := b.db.cells.Snapshot()
	for key, at := range b.db.written {
		if time.Since(at) > expiry {
			delete(cells, key)
			delete(b.db.written, key)
		}
	}
	b.db.cells.Restore(cells)
}

// store is the store of a process's set.
func (w *tagWorld) store(s *tagServer) segment.Store {
	switch w.sabotage {
	case "reuse", "R1 condition", "R3 step", "R4 clamp", "R5 missing":
		return &brokenStore{tagServer: s}
	case "R2 set":
		return &settingStore{s}
	}
	return s
}

// A settingStore lifts counters by setting them.
type settingStore struct{ *tagServer }

// Lift sets a counter to floor, even a higher one.
func (s *settingStore) Lift(ctx context.Context, tag, _ string, floor int64) error {
	_, err := s.w.admin.Alter(ctx, tag, segment.Change{MaxID: &floor, Force: true})
	return err
}

// A brokenStore breaks the promises of a store.
type brokenStore struct {
	*tagServer
	last   segment.Grant
	failed bool
	calls  int
}

// Advance moves a counter. One call is in flight for each tag; the last grant is that of any.
func (s *brokenStore) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	s.calls++
	if s.w.sabotaged("R5 missing") && s.calls%10 == 0 {
		zero := int64(0)
		_, _ = s.w.admin.Alter(ctx, tag, segment.Change{MaxID: &zero, Force: true})
	}
	if s.failed && s.w.sabotaged("reuse") && s.last.Step > 0 {
		s.failed = false
		return s.last, nil
	}
	grant, err := s.tagServer.Advance(ctx, tag, n)
	switch {
	case err != nil:
		s.failed = true
		return grant, err
	case s.w.sabotaged("R3 step") && n == 0:
		s.w.alter(s.w.random(s.p.name)) // an operator is faster than the read of the step
		grant.Range.Start = max(0, grant.Range.End-s.stepNow(ctx, tag))
	case s.w.sabotaged("R4 clamp"):
		if excess := grant.Range.End - 5000; excess > 0 {
			grant.Range.Start, grant.Range.End = max(0, grant.Range.Start-excess), 5000
		}
	}
	s.last = grant
	return grant, nil
}

func (s *brokenStore) stepNow(ctx context.Context, name string) int64 {
	for tag, err := range s.w.admin.Tags(ctx) {
		if err == nil && tag.Name == name {
			return tag.Step
		}
	}
	return 1
}

// Return sets the counter back, wherever it stands.
func (s *brokenStore) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	if !s.w.sabotaged("R1 condition") {
		return s.tagServer.Return(ctx, tag, last, start)
	}
	b := &port{s.p, s.w.db}
	return b.call(ctx, true, func() error {
		_, err := s.w.admin.Alter(ctx, tag, segment.Change{MaxID: &start, Force: true})
		return err
	})
}

// layoutsOf returns the layouts of a machine. Sometimes one differs from the other machines' layout
// of that name, or from their default.
func (w *leaseWorld) layoutsOf(m *machine) []snowflake.NodeLayout {
	layouts, first := slices.Clone(w.layouts), m == w.machines[0]
	if first && w.mixed {
		layouts[0].SequenceBits--
		layouts[0].WorkerBits++
	}
	if first && w.renamed {
		layouts[0].Name = "renamed"
	}
	if first && w.far {
		layouts[0].Options.MaxAhead = farAhead
	}
	if !first && w.older {
		return layouts
	}
	byDefault := layouts[0]
	byDefault.Name = byDefault.Record("").Default("simulated").Name
	return append(layouts, byDefault)
}

// ServerEpoch returns which server answers.
func (s *leaseServer) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	if s.judged != nil {
		epoch := *s.judged
		s.judged = nil
		return epoch, nil
	}
	ctx, cancel := s.pauseBefore(ctx, "epoch")
	defer cancel()
	epoch, err := s.Registry.ServerEpoch(ctx)
	s.asked = epoch
	if s.p.pauseAt("answer") {
		err = errors.Join(err, s.p.await())
	}
	return epoch, err
}

// claimed has the next look at the registry see the server from before the claim.
func (s *leaseServer) claimed() {
	if s.w.sabotaged("W9 look") {
		judged := s.asked
		s.judged = &judged
	}
}
