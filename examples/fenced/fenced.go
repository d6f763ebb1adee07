// Package fenced gives generators of other libraries a leased worker ID, and ends them before the
// lease does.
//
// Such a generator reads the clock and knows no lease: between the check of the lease and the
// ID that follows it the process may pause. So it is stopped a margin before its time is over,
// and IDs are checked after they were made: one whose time is not covered is dropped.
package fenced

import (
	"errors"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/sony/sonyflake/v2"

	"github.com/leaf-id/leaf/worker"
)

// ErrStopped is returned while no worker ID is held, and ErrNotYet while its lease does not cover the
// present time.
var (
	ErrStopped = errors.New("no worker ID is held")
	ErrNotYet  = errors.New("the lease of the worker ID does not cover this time yet: try again")
)

// A User is a [worker.LeaseUser] that makes a generator for each lease. Give it to a
// [worker.Keeper], whose registry may be that of Leaf servers: see package relay.
type User struct {
	// Make returns what makes IDs under a worker ID, and tells the time of an ID.
	Make func(worker int64) (next func() (int64, error), timeOf func(int64) time.Time, err error)

	// OnStop is called when no ID may be made any more until the next lease.
	OnStop func(why error)

	mu     sync.Mutex
	lease  *worker.Lease
	next   func() (int64, error)
	timeOf func(int64) time.Time
	last   time.Time
	why    error
}

// Begin implements [worker.LeaseUser].
func (u *User) Begin(l *worker.Lease) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lease, u.last = l, time.Time{}
	u.next, u.timeOf, u.why = u.Make(l.Worker())
}

// Seal implements [worker.LeaseUser].
func (u *User) Seal(why error) time.Time {
	u.mu.Lock()
	last, held := u.last, u.lease != nil
	u.lease, u.next, u.last, u.why = nil, nil, time.Time{}, why
	u.mu.Unlock()
	if held && u.OnStop != nil {
		u.OnStop(why)
	}
	if last.IsZero() {
		return last
	}
	return last.Add(unit)
}

// unit is at least a tick of either library, in whole milliseconds.
const unit = 10 * time.Millisecond

// patience is how long Next waits for the keeper to extend the lease, which takes a write to its
// state file.
const patience = 100 * time.Millisecond

// Next returns an ID of a time within the lease, or [ErrStopped] or [ErrNotYet]. With a state file a
// lease covers a few seconds, and the keeper extends it when Next is called: Next waits for that.
func (u *User) Next() (id int64, err error) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		id, err = u.tryNext()
		if err != ErrNotYet || time.Since(start) > patience {
			return id, err
		}
	}
}

func (u *User) tryNext() (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lease == nil || u.next == nil {
		return 0, errors.Join(ErrStopped, u.why)
	}
	now := time.Now()
	u.lease.Need(now.Add(time.Second))
	if now.Before(u.lease.Floor()) || !now.Add(unit).Before(u.lease.Limit()) {
		return 0, ErrNotYet
	}
	id, err := u.next()
	if err != nil {
		return 0, err
	}
	at := u.timeOf(id)
	if at.Before(u.lease.Floor()) || !at.Add(unit).Before(u.lease.Limit()) {
		return 0, ErrNotYet // it is never used
	}
	if at.After(u.last) {
		u.last = at
	}
	return id, nil
}

// Snowflake is the Make of bwmarrin/snowflake, whose worker IDs go up to 1023.
func Snowflake(id int64) (next func() (int64, error), timeOf func(int64) time.Time, err error) {
	node, err := snowflake.NewNode(id)
	if err != nil {
		return nil, nil, err
	}
	next = func() (int64, error) { return node.Generate().Int64(), nil }
	return next, func(id int64) time.Time { return time.UnixMilli(snowflake.ID(id).Time()) }, nil
}

// epoch is that of all sonyflake IDs here. It must never change.
var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Sonyflake is the Make of version 2 of sonyflake, whose worker IDs go up to 65535, with its own
// unit of time, 10 ms.
func Sonyflake(id int64) (next func() (int64, error), timeOf func(int64) time.Time, err error) {
	flake, err := sonyflake.New(sonyflake.Settings{
		StartTime: epoch,
		MachineID: func() (int, error) { return int(id), nil },
	})
	if err != nil {
		return nil, nil, err
	}
	return flake.NextID, flake.ToTime, nil
}
