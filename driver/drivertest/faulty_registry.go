package drivertest

import (
	"context"
	"slices"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// The kinds of calls to a [FaultyRegistry].
const (
	OpLoad  Op = "load"
	OpSwap  Op = "swap"
	OpList  Op = "list"
	OpClock Op = "clock"
)

// A RegistryCall describes one call to a [FaultyRegistry].
type RegistryCall struct {
	Op       Op
	Worker   int64         // of Load and Swap
	Old, New worker.Record // of Swap
	Seq      int           // 1 for the first call of this Op
}

// FaultyRegistry is a [worker.Registry] that forwards to another one, fails by plan, and records
// the writes. Without a plan it only forwards. It has no optional methods; embed it next to a
// [worker.Watcher], say, to have both. It uses only the clock and channels, so it works in a
// synctest bubble. Its methods are safe for concurrent use.
//
// To make a write that happens after its caller gave up, fail the call, and later swap its Old and
// New on the registry behind.
type FaultyRegistry struct {
	Registry worker.Registry // the registry behind; set before first use

	plans[RegistryCall]
	written []worker.Record
}

// Written returns the records that the registry behind was known to have written, in
// the order of its answers, also those whose answer was kept from the caller.
func (f *FaultyRegistry) Written() []worker.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.written)
}

// Load forwards to the registry behind.
func (f *FaultyRegistry) Load(ctx context.Context, id int64) (r worker.Record, err error) {
	err = f.do(ctx, RegistryCall{Op: OpLoad, Worker: id}, func() (err error) {
		r, err = f.Registry.Load(ctx, id)
		return err
	})
	if err != nil {
		return worker.Record{}, err
	}
	return r, nil
}

// Swap forwards to the registry behind.
func (f *FaultyRegistry) Swap(ctx context.Context, old, new worker.Record) (now worker.Record, err error) {
	err = f.do(ctx, RegistryCall{Op: OpSwap, Worker: new.Worker, Old: old, New: new}, func() (err error) {
		if now, err = f.Registry.Swap(ctx, old, new); err == nil {
			f.record(new)
		}
		return err
	})
	if err != nil {
		return worker.Record{}, err
	}
	return now, nil
}

// List forwards to the registry behind.
func (f *FaultyRegistry) List(ctx context.Context) (all []worker.Record, err error) {
	err = f.do(ctx, RegistryCall{Op: OpList}, func() (err error) {
		all, err = f.Registry.List(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Clock forwards to the registry behind.
func (f *FaultyRegistry) Clock(ctx context.Context) (now time.Time, err error) {
	err = f.do(ctx, RegistryCall{Op: OpClock}, func() (err error) {
		now, err = f.Registry.Clock(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, err
	}
	return now, nil
}

// do counts the call and makes it, with its fault.
func (f *FaultyRegistry) do(ctx context.Context, c RegistryCall, call func() error) error {
	return f.begin(c.Op, func(seq int) RegistryCall { c.Seq = seq; return c }).inject(ctx, call)
}

func (f *FaultyRegistry) record(r worker.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Layouts = slices.Clone(r.Layouts)
	f.written = append(f.written, r)
}
