package worker

import "context"

// A Disposable is an [Assigner] whose worker IDs are used once: each start of a process
// is dealt one that no other start ever had or will have. So nothing has to be known
// about who used it before, and its cells are those of this process alone.
type Disposable interface {
	Assigner

	// Discard gives up the worker ID that this process was dealt: another process of
	// this machine uses it. The next Assign deals another.
	Discard(worker int64)

	// Starts asks for the latest starts, at most n, the last one first.
	Starts(ctx context.Context, n int) ([]Start, error)

	// Supply returns how many starts are used up, as the registry last said. It makes no call.
	Supply() Supply
}

// A Start is one start of a process, and the worker ID that it was dealt.
type Start struct {
	Worker int64
	Host   string
	Port   string
	Kind   string // container or actual, for people
	Date   string // YYYY-MM-DD, where the process ran
}

// A Supply is the number of used worker IDs, and of all.
type Supply struct {
	Used int64 // the highest used one; 0: unknown
	Max  int64 // the highest that the layouts hold; 0: not known yet
}

// Left returns the number of remaining starts; 0 if it is unknown.
func (s Supply) Left() int64 { return max(s.Max-s.Used, 0) }
