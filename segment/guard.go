package segment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/leaf-id/leaf"
)

// minJump is the least distance of a lift above the known IDs, and jumpSteps the same in steps. A
// random amount of up to as much comes on top. Otherwise, after the loss of a lift and the IDs
// above it, the next node with the same knowledge would lift to the very same place.
const (
	minJump   = 10_000_000
	jumpSteps = 100
)

// A guard notices lost writes of a store: the counter, which only rises, grants IDs below some that
// this node has seen, or another server answers, which may not know the last writes of the former
// one. It narrows such a loss; a node without knowledge notices nothing.
type guard struct {
	buffer  *Buffer
	largest int64 // step of the tag, or grant, seen so far

	recalled sourceMarks     // from the memory
	own      sourceMarks     // of this buffer's grants
	before   int64           // the mark before the last admitted grant
	lifts    map[string]lift // lifts in progress, by source

	regressions atomic.Int64
}

// A lift ends with a grant that begins at floor or above: no ID below is issued.
type lift struct {
	floor int64
	last  Mark // of the last discarded grant: the store may lose writes again meanwhile
}

// admit returns -1 when grant may be issued. Otherwise grant is lost, and admit
// returns by how much the counter has to advance before it may be asked again.
func (g *guard) admit(grant Grant) (distance int64, err error) {
	if grant.Guarded {
		return -1, nil
	}
	g.largest = max(g.largest, grant.Step)
	l, lifting := g.lifts[grant.Source]
	mark := g.known(grant.Source)
	if !lifting && mark.contradicts(grant) {
		mark = g.reconsider(grant.Source)
	}
	last := mark
	if lifting {
		last = l.last
	}
	if last.contradicts(grant) {
		last.High = max(last.High, l.floor)
		if l.floor, err = g.raise(last, grant); err != nil {
			return 0, err
		}
	}
	if grant.Range.Start < l.floor {
		l.last = Mark{High: grant.Range.End, Server: grant.Server}
		g.setLift(grant.Source, l)
		return max(0, l.floor-grant.Range.End), nil
	}
	delete(g.lifts, grant.Source)
	g.largest = max(g.largest, min(grant.Range.Len(), MaxStep)) // of issued ranges: a lift is no step
	g.before = mark.High
	mark = Mark{High: grant.Range.End, Server: grant.Server}
	g.own.set(grant.Source, mark)
	if err := g.buffer.opts.Memory.Remember(g.buffer.tag, grant.Source, mark); err != nil {
		// The guard is there for faults of the store, and must not be one itself.
		g.buffer.opts.Logger.Warn("the counter will not be remembered across a restart", "tag", g.buffer.tag, "err", err)
	}
	if grant.Period != "" && g.before == 0 {
		g.dropPeriods() // it is one more
	}
	return -1, nil
}

// contradicts reports whether a grant cannot follow the mark.
func (m Mark) contradicts(grant Grant) bool {
	otherServer := m.Server != "" && grant.Server != "" && m.Server != grant.Server
	return grant.Range.Start < m.High || otherServer
}

// raise decides from where on a counter that contradicts mark is trusted again.
func (g *guard) raise(mark Mark, grant Grant) (floor int64, err error) {
	jump := g.buffer.opts.RegressionJump
	if jump == 0 { // the default
		jump = max(minJump, jumpSteps*g.largest)
	}
	g.regressions.Add(1)
	high := max(mark.High, grant.Range.End)
	if jump > math.MaxInt64/2 || high > math.MaxInt64-2*jump {
		return 0, fmt.Errorf("tag %q: %w: it went back to %d, and %d above the %d seen there is no room",
			g.buffer.tag, leaf.ErrOverflow, grant.Range.Start, jump, mark.High)
	}
	floor = high + jump
	floor += rand.Int64N(jump)
	g.buffer.opts.Logger.Error("the store has lost writes: lifting the counter above what may be in use",
		"tag", g.buffer.tag, "source", grant.Source, "granted", grant.Range.Start, "seen", mark.High,
		"server", grant.Server, "server_before", mark.Server, "lift_to", floor)
	return floor, nil
}

func (g *guard) setLift(source string, l lift) {
	if g.lifts == nil {
		g.lifts = make(map[string]lift)
	}
	g.lifts[source] = l
}

// recall must come before the first call to the store: another process that shares
// the memory may be granted the following range before this one has looked.
func (g *guard) recall() {
	if !g.buffer.recalled {
		g.buffer.recalled = true
		g.recalled = marksOf(g.buffer.opts.Memory.Recall(g.buffer.tag))
	}
}

// known joins the recalled mark of a source with this buffer's grants.
func (g *guard) known(source string) Mark {
	recalled, own := g.recalled.get(source), g.own.get(source)
	if own.High >= recalled.High {
		return own
	}
	return recalled
}

// reconsider recalls a contradicted mark again: a process with the same memory may have given IDs
// back since, after it lowered its mark.
func (g *guard) reconsider(source string) Mark {
	g.recalled = marksOf(g.buffer.opts.Memory.Recall(g.buffer.tag))
	return g.known(source)
}
