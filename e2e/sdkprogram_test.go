package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	leafsdk "github.com/leaf-id/leaf/client"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
)

// A lifeSpan is when a life of a server began to serve.
type lifeSpan struct {
	*life
	from time.Time
}

func (m *member) begin(l *life) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.since = append(m.since, lifeSpan{l, time.Now()})
}

// lifeAt returns which life answered a call: the only one that served at some time of it; empty: two
// did.
func (m *member) lifeAt(begin, end time.Time) (name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.since {
		if l.from.After(end) || l.endedBefore(begin) {
			continue
		}
		if name != "" {
			return ""
		}
		name = l.name
	}
	return name
}

// An sdkProgram is one with a stock of its own, which asks another server where one fails.
type sdkProgram struct {
	c     *cluster
	hosts map[string]*member

	mu      sync.Mutex
	granted []serverGrant // in turn
}

// A serverGrant is the rest of a range that a server gave a program.
type serverGrant struct {
	rest   leaf.Range
	server string
}

// sdk starts a program. Its IDs ascend within a range alone.
func (c *cluster) sdk(m *member) {
	p := &sdkProgram{c: c, hosts: map[string]*member{}}
	var hosts []string
	for i := range c.members {
		other := c.members[(m.id+i)%len(c.members)]
		hosts = append(hosts, other.front.addr)
		p.hosts[other.front.addr] = other
	}
	ids, err := leafsdk.New("http://"+strings.Join(hosts, ","), &leafsdk.Options{MaxStock: labStock, OnCall: p.called})
	c.must("open a client", err)
	c.closed = append(c.closed, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = ids.Close(ctx) // others have taken IDs since: the rest is lost
	})
	name := fmt.Sprintf("sdk@%d", m.id)
	c.loop(name, func(rng *rand.Rand) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		begin := c.elapsed()
		ranges, err := ids.Take(ctx, labTag, nil, manyOrFew(rng, c.store.most))
		p.note(labcheck.Receipt{Space: labTag, Client: name, Begin: begin, End: c.elapsed(), Unordered: true}, ranges, err)
		c.rest(begin)
	})
}

// called notes which life of a server brought a range.
func (p *sdkProgram) called(call leafsdk.Call) {
	if call.Range.Empty() {
		return
	}
	end := time.Now()
	server := p.hosts[call.Server].lifeAt(end.Add(-call.Took), end)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.granted = append(p.granted, serverGrant{call.Range, server})
}

// note records the result of a call, by the servers that the IDs come from.
func (p *sdkProgram) note(r labcheck.Receipt, ranges []leaf.Range, err error) {
	if err != nil {
		p.c.fail(r, 1, err)
		return
	}
	bySource := map[string][]leaf.Range{}
	for _, ids := range ranges {
		for !ids.Empty() {
			first, server := p.take(ids)
			bySource[server] = append(bySource[server], first)
			ids.Start = first.End
		}
	}
	add := p.c.history.Add
	for server, ranges := range bySource {
		r.Server = server
		add(r, ranges...)
		add = p.c.history.Extend // it is one call
	}
}

// take returns the part of ids that came in one grant, and the server of that; empty: no server
// granted it. Of two grants with the same IDs the first is used up first.
func (p *sdkProgram) take(ids leaf.Range) (part leaf.Range, server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.granted {
		if g := &p.granted[i]; g.rest.Start <= ids.Start && ids.Start < g.rest.End {
			part = leaf.Range{Start: ids.Start, End: min(ids.End, g.rest.End)}
			if g.rest.Start = part.End; g.rest.Empty() {
				server = g.server
				p.granted = append(p.granted[:i], p.granted[i+1:]...)
				return part, server
			}
			return part, g.server
		}
	}
	return ids, ""
}
