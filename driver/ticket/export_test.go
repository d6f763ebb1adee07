package ticket

import "context"

// ResizeUntil is [Resize], broken off by the error that after returns.
func ResizeUntil(ctx context.Context, servers []Server, layout Layout, opts ResizeOptions, after func(stage string) error) error {
	return (&resizer{layout: layout, lost: opts.Lost, jump: opts.Jump, after: after}).run(ctx, servers, opts.Retired)
}

// Share is a share for tests of its arithmetic.
func Share(servers, number, stride int64) share { return share{servers, number, stride} }

func (s share) Align(floor int64) int64 { return s.align(floor) }
func (s share) Drawn(next int64) int64  { return s.drawn(next) }

func (l Layout) Table(tag string) string { return l.table(tag) }

// LosesCounters is for tests without an old server.
func LosesCounters(version string) bool { return losesCounters(version) }
