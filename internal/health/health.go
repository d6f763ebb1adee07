// Package health decides whether a server can issue IDs, how long its stock lasts, and which
// problems it has. It reads the state of the generators and never asks a database.
//
// A fault of the whole fleet must not make every server refuse requests: a load balancer that
// removes all servers does more harm than servers with some of the IDs. So a store that fails after
// its first answer makes a server unready only when the server can issue no ID in use. A fault of
// this server alone makes it unready at once.
package health

import (
	"cmp"
	"slices"
	"time"
)

// Names of conditions. Programs may branch on them; they never change.
const (
	Stopping        = "stopping"
	StoreSilent     = "store_silent"     // has not answered since the start
	StoreUnfit      = "store_unfit"      // an operator has to mend it
	StoreFailing    = "store_failing"    // does not deliver at present
	TagFailing      = "tag_failing"      // something is wrong with one tag alone
	NoWorkerID      = "no_worker_id"     // no lease that may be used
	RegistryFailing = "registry_failing" // the lease cannot be extended at present
	StateFile       = "state_file"       // what a restart must know cannot be written
	ClockOff        = "clock_off"        // the clock differs from those of others
	ClockStepped    = "clock_stepped"    // the clock has moved away from the time in IDs
	LayoutEnding    = "layout_ending"    // runs out of time within a year
	WorkerIDsLow    = "worker_ids_low"   // few starts are left
)

// A Condition is one problem of a server.
type Condition struct {
	Name    string
	Schemes []string // empty: all schemes
	Err     error    // the cause; it may name hosts and databases, see [leaf.StoreError]

	// Down: the schemes issue no IDs, or will soon issue no more. Otherwise an operator should act
	// and the schemes still work.
	Down bool

	// Shared says that other servers likely are in the same condition.
	Shared bool

	// Optional says that the configuration does not ask for the schemes, which lack the
	// registry that they need.
	Optional bool
}

// A Report lists the problems of a server at one time, the most urgent first.
type Report struct {
	Conditions []Condition
	InUse      []string // the schemes whose IDs have been asked for since the start
}

// Err returns why a load balancer should send no requests for IDs of a scheme here, or nil. With an
// empty scheme it reports on the whole server: a shared fault then counts only if it stops every
// scheme in use.
func (r Report) Err(scheme string) error {
	for _, c := range r.Conditions {
		if c.stops(scheme) || scheme == "" && c.Down && (!c.Shared || r.nothingWorks()) {
			return c.Err
		}
	}
	return nil
}

// stops reports whether c keeps a scheme from issuing IDs.
func (c Condition) stops(scheme string) bool {
	return c.Down && (len(c.Schemes) == 0 || slices.Contains(c.Schemes, scheme))
}

// nothingWorks reports whether every scheme in use is down.
func (r Report) nothingWorks() bool {
	return len(r.InUse) > 0 && !slices.ContainsFunc(r.InUse, func(scheme string) bool {
		return !slices.ContainsFunc(r.Conditions, func(c Condition) bool { return c.stops(scheme) })
	})
}

// Facts are the input of [Judge].
type Facts struct {
	Stopping bool
	Now      time.Time

	// Least is for how long IDs must last, with the store or the registry away, for a scheme
	// not to be down.
	Least time.Duration

	Store *StoreFacts // nil: no scheme of counters
	Lease *LeaseFacts // nil: no time-based scheme
}

// Judge makes a report.
func Judge(f Facts) Report {
	var r Report
	if f.Stopping {
		r.Conditions = append(r.Conditions, Condition{Name: Stopping, Down: true, Err: errStopping})
	}
	if f.Store != nil {
		r.judgeStore(f)
	}
	if f.Lease != nil {
		r.judgeLease(f)
	}
	slices.SortStableFunc(r.Conditions, func(a, b Condition) int { return cmp.Compare(rank(a), rank(b)) })
	return r
}

func rank(c Condition) int {
	if c.Down {
		return 0
	}
	return 1
}
