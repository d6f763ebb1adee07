package ticket

import (
	"context"
	"database/sql"
)

// ResizeUntil is [DB.Resize], broken off by the error that after returns.
func ResizeUntil(ctx context.Context, servers []Server, layout Layout, opts ResizeOptions, after func(step string) error) error {
	r := &resizer{layout: layout, lost: opts.Lost, jump: opts.Jump, after: after}
	return r.run(ctx, servers, opts.Retired)
}

// Share is a share for tests of its arithmetic.
func Share(servers, number, stride int64) share {
	return share{Layout{Stride: stride}, servers, number}
}

func (s share) Align(floor int64) int64 { return s.align(floor) }
func (s share) Drawn(next int64) int64  { return s.drawn(next) }

func (l Layout) Table(tag string) string { return l.table(tag) }

// LosesCounters is for tests without an old server.
func LosesCounters(version string) bool { return losesCounters(version) }

// JudgeRows judges a draw from blocks, or of a ticket, with rows as ROW_COUNT().
func JudgeRows(stride, rows int64) error {
	f := facts{share: Share(1, 1, stride), generation: 1}
	return f.judge(drawResult{rows: rows, last: 1, increment: 1, offset: 1, globalInc: 1, globOff: 1, generation: sql.Null[int64]{V: 1, Valid: true}})
}
