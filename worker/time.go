package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How the clock of this machine is watched.
const (
	clockInterval = time.Second
	smallStep     = 10 * time.Millisecond  // less is no step
	steadyStep    = 100 * time.Millisecond // two checks that differ by less see the same step
	steadyChecks  = 3                      // a clock that jumps back and forth is not followed
	refusedChecks = 30                     // an unconfirmed step is checked again then
	peerAge       = 30 * time.Second       // peers that reported since then are running
)

// ErrClockOff is wrapped where this machine's clock differs from those of others by more than
// [Options.Tolerance].
var ErrClockOff = errors.New("this machine's clock is off")

// checkClock compares this machine's clock with the registry's and with the median of
// the running peers. Records that this node may have written do not count. A clock that
// agrees with the registry's is right, even if the peers differ: they may have been set
// right as well, and still use the time from before.
func (k *Keeper) checkClock(v view) error {
	if err := k.checkOffset(v.offset, "the worker registry's"); err != nil {
		return err
	}
	var peers []time.Duration
	for _, r := range v.records {
		if r.Held() && node(r.Owner) != node(k.opts.Owner) && r.Seen.After(v.registry.Add(-peerAge)) && !r.Seen.After(v.registry.Add(peerAge)) {
			peers = append(peers, r.Offset)
		}
	}
	if len(peers) == 0 {
		return nil
	}
	slices.Sort(peers)
	err := k.checkOffset(v.offset-peers[len(peers)/2], fmt.Sprintf("the median of %d running nodes", len(peers)))
	if err != nil && !v.own && v.offset.Abs() <= rightClock {
		k.log.Warn("the running nodes' clocks are off; this machine's agrees with the worker registry's", "err", err)
		return nil
	}
	return err
}

// rightClock is how close to the registry's clock one is right.
const rightClock = time.Second

// node returns the part of an owner's name that stays over a restart.
func node(owner string) string {
	name, _, _ := strings.Cut(owner, " ")
	return name
}

func (k *Keeper) checkOffset(off time.Duration, whose string) error {
	if off.Abs() <= k.opts.Tolerance {
		return nil
	}
	direction := "ahead of"
	if off < 0 {
		direction = "behind"
	}
	return fmt.Errorf("%w: it is %v %s %s, more than the %v that are tolerated: set the clock", ErrClockOff, off.Abs(), direction, whose,
		k.opts.Tolerance)
}

// A clockWatch watches for steps of this machine's clock.
type clockWatch struct {
	*Keeper
	seen   time.Duration // the present step
	checks int           // how often, one after the other
	logged time.Duration // the last logged step
}

// check reports whether it has moved the time that IDs carry forwards.
func (w *clockWatch) check(ctx context.Context) bool {
	step := w.clock.step()
	w.count(func(s *Status) { s.ClockStep = step })
	if step.Abs() < smallStep {
		w.checks, w.logged = 0, 0
		return false
	}
	if w.checks == 0 || (step-w.seen).Abs() > steadyStep {
		w.seen, w.checks = step, 0
	}
	w.checks++
	if w.checks%refusedChecks != steadyChecks {
		return false
	}
	if step < 0 {
		if w.isNew(step) {
			w.log.Warn("this machine's clock was set back; IDs go on with the time from before", "by", -step)
		}
		return false
	}
	if err := w.confirmStep(ctx, step); err != nil {
		if w.isNew(step) {
			w.log.Error("this machine's clock was set forwards, and is not followed", "by", step, "err", err)
		}
		return false
	}
	w.clock.follow(step)
	w.log.Warn("this machine's clock was set forwards; IDs follow", "by", step)
	w.checks, w.logged = 0, 0
	return true
}

// isNew reports whether to log a step: each is logged once.
func (w *clockWatch) isNew(step time.Duration) bool {
	if (step - w.logged).Abs() <= steadyStep {
		return false
	}
	w.logged = step
	return true
}

// confirmStep reports why a step forwards is not to be followed.
func (w *clockWatch) confirmStep(ctx context.Context, step time.Duration) error {
	v, err := w.readClock(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("the worker registry's clock cannot be asked: %w", err)
	case v.own && step > w.opts.MaxJump:
		return fmt.Errorf("no other clock confirms it, and it is more than %v: restart the server if the clock is right now", w.opts.MaxJump)
	case v.own:
		return nil
	}
	return w.checkOffset(v.offset+step, "the worker registry's")
}
