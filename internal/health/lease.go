package health

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// LeaseFacts are the state of the worker ID, read without asking its registry.
type LeaseFacts struct {
	Schemes []string // that issue under it
	InUse   []string // those of them whose IDs have been asked for

	Err    error // why no ID can be issued at present
	Held   bool  // IDs could be issued before, since the server started
	Status worker.Status
	Supply worker.Supply // zero: worker IDs are leased

	Layouts  map[string]time.Time // by name: the last time that an ID of it can carry
	Optional bool                 // the configuration names no registry, and the server saw none
}

// A step of the clock by less says nothing: it is never exact.
const smallStep = time.Second

func (r *Report) judgeLease(f Facts) {
	l, s := f.Lease, f.Lease.Status
	r.InUse = append(r.InUse, l.InUse...)
	if err, down := l.trouble(f); err != nil {
		name := leaseCondition(err, down)
		shared := l.Optional || l.Held && fromRegistry(err)
		r.Conditions = append(r.Conditions, Condition{Name: name, Schemes: l.Schemes, Down: down, Shared: shared, Optional: l.Optional, Err: err})
	}
	warn := func(name, format string, args ...any) {
		r.Conditions = append(r.Conditions, Condition{Name: name, Schemes: l.Schemes, Shared: true, Err: fmt.Errorf(format, args...)})
	}
	if s.ClockStep.Abs() >= smallStep {
		warn(ClockStepped, "this machine's clock has moved by %v, which IDs do not follow", s.ClockStep.Round(time.Millisecond))
	}
	if l.Supply.Max > 0 && l.Supply.Left() <= l.Supply.Max/10 {
		warn(WorkerIDsLow, "%d of %d worker IDs are left, and each start uses one up", l.Supply.Left(), l.Supply.Max)
	}
	for name, last := range l.Layouts {
		if last.Before(f.Now.AddDate(1, 0, 0)) {
			warn(LayoutEnding, "the layout %s runs out on %s: after that it issues no ID", name, last.UTC().Format(time.DateOnly))
		}
	}
}

// trouble returns the problem of the lease, and whether its schemes issue no IDs now or soon.
func (l *LeaseFacts) trouble(f Facts) (err error, down bool) {
	left := l.Status.Horizon.Sub(f.Now)
	switch {
	case l.Err != nil:
		return fmt.Errorf("%s: %w", strings.Join(l.Schemes, ", "), l.Err), true
	case l.Status.Err == nil:
		return nil, false
	case onDisk(l.Status.Err):
		return l.Status.Err, true
	case left < f.Least:
		return fmt.Errorf("the lease of worker ID %d ends in %v: %w", l.Status.Worker, left.Round(time.Millisecond), l.Status.Err), true
	}
	return fmt.Errorf("the lease of worker ID %d lasts for %v: %w", l.Status.Worker, left.Round(time.Second), l.Status.Err), false
}

func leaseCondition(err error, down bool) string {
	switch {
	case onDisk(err):
		return StateFile
	case errors.Is(err, worker.ErrClockOff), errors.Is(err, leaf.ErrClock):
		return ClockOff
	case down:
		return NoWorkerID
	}
	return RegistryFailing
}

// fromRegistry reports whether err is an answer of the registry, or a missing answer.
func fromRegistry(err error) bool {
	_, ok := errors.AsType[*leaf.StoreError](err)
	return ok || errors.Is(err, context.DeadlineExceeded)
}

// onDisk reports an error of the state file, which bounds the times in IDs.
func onDisk(err error) bool {
	_, ok := errors.AsType[*fs.PathError](err)
	return ok && !fromRegistry(err)
}
