package drivertest

import (
	"context"
	"slices"
	"sync"
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

// FaultyRegistry is a [worker.Registry] that forwards to another one, fails as it is
// told to, and records what was written. Without a plan it is transparent. It has
// none of the optional methods; embed it beside a [worker.Watcher], say, to have one
// that is both. It uses nothing but the clock and channels, so that it works in a
// synctest bubble. Its methods are safe for concurrent use.
//
// A write that happens after its caller gave up is a call that fails by its fault,
// and whose Old and New the test swaps itself, later, on the registry behind.
type FaultyRegistry struct {
	Registry worker.Registry // the registry behind; set before first use

	mu      sync.Mutex
	plan    func(RegistryCall) Fault
	calls   map[Op]int
	written []worker.Record
}

// Plan has fault decide on each call from now on; nil lets all through. It is called
// by one goroutine at a time and must not call the FaultyRegistry.
func (f *FaultyRegistry) Plan(fault func(RegistryCall) Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = fault
}

// Set has each call from now on meet fault. The zero Fault makes the registry healthy.
func (f *FaultyRegistry) Set(fault Fault) { f.Plan(func(RegistryCall) Fault { return fault }) }

// Next has the following calls of kind op meet the faults, one each; all others go
// through.
func (f *FaultyRegistry) Next(op Op, faults ...Fault) {
	f.Plan(func(c RegistryCall) (fault Fault) {
		if c.Op == op && len(faults) > 0 {
			fault, faults = faults[0], faults[1:]
		}
		return fault
	})
}

// Calls returns how many calls of kind op were made.
func (f *FaultyRegistry) Calls(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[op]
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
func (f *FaultyRegistry) Swap(ctx context.Context, old, new worker.Record) error {
	return f.do(ctx, RegistryCall{Op: OpSwap, Worker: new.Worker, Old: old, New: new}, func() error {
		err := f.Registry.Swap(ctx, old, new)
		if err == nil {
			f.record(new)
		}
		return err
	})
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
	return f.begin(c).befall(ctx, call)
}

func (f *FaultyRegistry) begin(c RegistryCall) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls == nil {
		f.calls = make(map[Op]int)
	}
	f.calls[c.Op]++
	if f.plan == nil {
		return Fault{}
	}
	c.Seq = f.calls[c.Op]
	return f.plan(c)
}

func (f *FaultyRegistry) record(r worker.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Layouts = slices.Clone(r.Layouts)
	f.written = append(f.written, r)
}
