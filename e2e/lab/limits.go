package lab

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leaf-id/leaf"
)

// A Limit is an event after which servers may issue IDs again, as documented: a store lost
// acknowledged writes, and a server that remembers nothing asked it first.
type Limit struct {
	Space  string
	Lost   leaf.Range        // the counter went back from its end to its start
	Event  string            // what lost the writes
	Before []string          // the server lives that ended before
	Forgot map[string]string // by life that began afterwards: how it lost its memory
}

// A Cause is why one server life issued IDs that another one had issued.
type Cause struct {
	First  string     `json:"first"`
	Second string     `json:"second"`
	IDs    int64      `json:"ids"`
	Within leaf.Range `json:"within"` // they are
	Why    string     `json:"why"`
}

// Explain compares all receipts. It returns why IDs were issued twice, by server lives, for those
// that a limit explains; and it counts the others and names the lowest of them. An unexplained
// duplicate is one within a server's life, one of an unknown server, one of IDs that the store did
// not lose, one of a server that began with a memory, and an ID that came a third time.
func (h *History) Explain(limits ...Limit) (causes []Cause, twice int64, err error) {
	found := map[[2]string]*Cause{}
	var open []*Receipt // of the present space, those that may reach further
	for _, r := range h.sorted(byRange, nil) {
		if r.Range.Empty() || r.Range.Start < 0 {
			return nil, 0, fmt.Errorf("no range of IDs: %v", r)
		}
		open = slices.DeleteFunc(open, func(o *Receipt) bool { return o.Space != r.Space || o.Range.End <= r.Range.Start })
		for _, o := range open {
			both := leaf.Range{Start: r.Range.Start, End: min(r.Range.End, o.Range.End)}
			c := explain(limits, o, r, both)
			switch old := found[[2]string{c.First, c.Second}]; {
			case c.Why == "":
				twice += both.Len()
				err = cmp.Or(err, fmt.Errorf("issued twice: %v and %v", o, r))
			case old == nil:
				found[[2]string{c.First, c.Second}] = &c
			default:
				old.IDs += c.IDs
				old.Within.End = max(old.Within.End, both.End)
			}
		}
		open = append(open, r)
	}
	for _, c := range found {
		causes = append(causes, *c)
	}
	slices.SortFunc(causes, func(a, b Cause) int { return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second)) })
	return causes, twice, err
}

// explain returns the cause of the IDs that two receipts have in common; without a reason if no
// limit explains them.
func explain(limits []Limit, a, b *Receipt, both leaf.Range) Cause {
	for _, l := range limits {
		if slices.Contains(l.Before, b.Server) {
			a, b = b, a
		}
		how := l.Forgot[b.Server]
		if l.Space != a.Space || !slices.Contains(l.Before, a.Server) || how == "" || both.Start < l.Lost.Start || both.End > l.Lost.End {
			continue
		}
		return Cause{First: a.Server, Second: b.Server, IDs: both.Len(), Within: both,
			Why: fmt.Sprintf("%s took the counter back from %d to %d; %s %s", l.Event, l.Lost.End, l.Lost.Start, b.Server, how)}
	}
	return Cause{}
}
