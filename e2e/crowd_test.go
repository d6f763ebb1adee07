package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/leaf-id/leaf"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
	loadgen "github.com/leaf-id/leaf/internal/load"
)

// A crowd is clients that send many small requests at once, for all tags. Each fault lets it make
// as many calls as any other.

// crowdForms are the pipelines of each server, by protocol.
var crowdForms = []struct {
	protocol string
	clients  int
	calls    int // of a pipeline
}{{"resp", 6, 250}, {"api", 3, 60}, {"v1", 3, 60}}

// crowdRow is how many requests of a pipeline are alike in a row.
const crowdRow = 25

// crowdCalls returns how many calls the crowd of a scenario makes.
func crowdCalls() int {
	if n, err := strconv.Atoi(os.Getenv("LEAF_CALLS")); err == nil {
		return n
	}
	return figure(100_000, 8_000_000)
}

// crowds starts the crowd.
func (c *cluster) crowds() {
	for _, m := range c.members {
		for _, form := range crowdForms {
			for i := range form.clients {
				name := fmt.Sprintf("%s-%d@%d", form.protocol, i, m.id)
				rng := rand.New(rand.NewPCG(c.result.Seed, uint64(m.id)<<32|uint64(i)<<16|uint64(form.calls)))
				c.wg.Go(func() {
					for !c.ended() {
						c.crowd(name, m, form.protocol, makeCalls(rng, form.calls))
					}
				})
			}
		}
	}
}

// makeCalls returns the calls of a pipeline: rows of the same tag and number.
func makeCalls(rng *rand.Rand, n int) (calls []*loadgen.Call) {
	tags := slices.Sorted(maps.Keys(labTags))
	var row loadgen.Call
	for i := range n {
		if i%crowdRow == 0 {
			row = loadgen.Call{Key: tags[rng.IntN(len(tags))], Count: max(1, rng.IntN(60)-40)}
		}
		calls = append(calls, new(row))
	}
	return calls
}

// leastCrowdRest and mostCrowdRest bound how long a client of the crowd rests after a failure, longer
// each time: refused calls by the hundred thousand would keep the store from the processor that it
// needs to come back.
const leastCrowdRest, mostCrowdRest = 20 * time.Millisecond, time.Second

// crowd sends a pipeline again and again to one life of a server.
func (c *cluster) crowd(name string, m *member, protocol string, calls []*loadgen.Call) {
	l := m.now.Load()
	conn := l.target(protocol).Open()
	defer conn.Close()
	rest := leastCrowdRest
	for m.now.Load() == l && !c.ended() {
		if c.allowed.Add(-int64(len(calls))) < 0 {
			c.allowed.Add(int64(len(calls)))
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for _, call := range calls {
			call.IDs, call.Err = loadgen.IDs{}, nil
		}
		r := labcheck.Receipt{Server: l.name, Client: name, Begin: c.elapsed(), Unordered: c.store.unordered}
		loadgen.Do(context.Background(), conn, calls)
		r.End = c.elapsed()
		failed := c.notePipeline(r, calls)
		if failed == 0 {
			rest = leastCrowdRest
			continue
		}
		c.allowed.Add(int64(failed))
		time.Sleep(rest)
		rest = min(2*rest, mostCrowdRest)
	}
}

// notePipeline records the answers of a pipeline, and returns how many calls failed.
func (c *cluster) notePipeline(r labcheck.Receipt, calls []*loadgen.Call) (failed int) {
	answers := pipelined{receipt: r}
	var first error
	for _, call := range calls {
		if call.Err == nil {
			answers.note(call.Key, call.IDs.Ranges)
			continue
		}
		if failed++; first == nil || loadgen.Misfit(call.Err) {
			first = call.Err
		}
	}
	answers.add(&c.history, r.End)
	if failed > 0 {
		c.fail(r, failed, first)
	}
	return failed
}

// pipelined are the answers of one pipeline, by ID space. Ranges that follow one another become
// one: a history of millions of calls stays small, and every ID is compared all the same.
type pipelined struct {
	receipt labcheck.Receipt
	spaces  map[string]*pipelinedSpace
}

type pipelinedSpace struct {
	calls  int
	ranges []leaf.Range
}

// note takes in the answer to one call.
func (p *pipelined) note(space string, ranges []leaf.Range) {
	if p.spaces == nil {
		p.spaces = map[string]*pipelinedSpace{}
	}
	s := p.spaces[space]
	if s == nil {
		s = new(pipelinedSpace)
		p.spaces[space] = s
	}
	s.calls++
	for _, r := range ranges {
		if last := len(s.ranges) - 1; last >= 0 && s.ranges[last].End == r.Start {
			s.ranges[last].End = r.End
		} else {
			s.ranges = append(s.ranges, r)
		}
	}
}

// add adds all to a history.
func (p *pipelined) add(h *labcheck.History, end time.Duration) {
	r := p.receipt
	r.End = end
	for space, s := range p.spaces {
		r.Space, r.Calls = space, s.calls
		h.Add(r, s.ranges...)
	}
}

// awaitCrowd waits until the crowd has made its calls, for a while.
func (c *cluster) awaitCrowd() {
	const least = 250 // a pipeline
	for deadline := time.Now().Add(figure(10*time.Second, 2*time.Minute)); c.allowed.Load() > least && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}
