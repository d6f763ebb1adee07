package drivertest

import (
	"context"
	"sync"
	"time"
)

// A Fault is what goes wrong in one call, in the order of its fields. The zero value lets
// the call through.
type Fault struct {
	Hold    <-chan struct{} // wait until it is closed, or ctx ends
	Latency time.Duration   // sleep that long, or until ctx ends
	Before  error           // fail without having called the store
	Mute    bool            // after the store's answer, wait for ctx to end, and fail with its error
	After   error           // fail although the store has done the call
}

// plans count calls, of the kind C, and decide the fault of each of them.
type plans[C any] struct {
	mu    sync.Mutex
	plan  func(Op, C) Fault
	calls map[Op]int
}

// Plan makes fault decide on each call from now on; nil lets all through. Calls of fault do not
// overlap, and it must not call the planned object.
func (p *plans[C]) Plan(fault func(C) Fault) {
	if fault == nil {
		fault = func(C) Fault { return Fault{} }
	}
	p.set(func(_ Op, c C) Fault { return fault(c) })
}

// Set applies fault to each call from now on. The zero Fault ends all faults.
func (p *plans[C]) Set(fault Fault) { p.Plan(func(C) Fault { return fault }) }

// Next has the following calls of kind op meet the faults, one each; all others go through.
func (p *plans[C]) Next(op Op, faults ...Fault) {
	p.set(func(called Op, _ C) (fault Fault) {
		if called == op && len(faults) > 0 {
			fault, faults = faults[0], faults[1:]
		}
		return fault
	})
}

func (p *plans[C]) set(plan func(Op, C) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = plan
}

// Calls returns how many calls of kind op were made.
func (p *plans[C]) Calls(op Op) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[op]
}

// begin counts a call, which numbered returns with its number, and returns its fault.
func (p *plans[C]) begin(op Op, numbered func(seq int) C) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = make(map[Op]int)
	}
	p.calls[op]++
	if p.plan == nil {
		return Fault{}
	}
	return p.plan(op, numbered(p.calls[op]))
}

// inject makes the call with the fault.
func (f Fault) inject(ctx context.Context, call func() error) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	if f.Before != nil {
		return f.Before
	}
	if err := call(); err != nil {
		return err
	}
	if f.Mute {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.After
}

func (f Fault) wait(ctx context.Context) error {
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if f.Latency <= 0 {
		return nil
	}
	timer := time.NewTimer(f.Latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
