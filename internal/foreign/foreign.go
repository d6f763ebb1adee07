// Package foreign reads the counters of other ID generators from their databases: of Java Leaf,
// TinyID, CosId and ticket servers, and of tables with an AUTO_INCREMENT. It changes nothing.
package foreign

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-id/leaf/segment"
)

// A Counter is a counter of another system.
type Counter struct {
	System string // for people
	Table  string // or the key of a key-value store
	Name   string
	Next   int64  // one past the highest ID that it has handed out
	Step   int64  // 0: unknown
	Skip   string // why it must not be taken over; "": nothing speaks against it

	Options segment.TagOptions // of a tag of Leaf's own

	share share
}

// Leaf is the [Counter.System] of another store of Leaf's own.
const (
	Leaf     = "Leaf"
	javaLeaf = "Java Leaf"
)

// Own reports whether the counter belongs to a store of Leaf's kind. It is then the target's own
// counter if both URLs name one database.
func (c Counter) Own() bool { return c.System == Leaf || c.System == javaLeaf }

// A share is what one of several servers has of a counter: the numbers with a remainder.
type share struct{ of, remainder int64 }

// Found is the content of some databases.
type Found struct {
	Counters []Counter
	Notes    []string // about what cannot be taken over by a counter
}

// Add adds what another database has.
func (f *Found) Add(more Found) {
	f.Counters = append(f.Counters, more.Counters...)
	f.Notes = append(f.Notes, more.Notes...)
}

// Describe takes counters, steps and options from the listing of Leaf's own tags. A store of Leaf's
// in MySQL looks like one of Java Leaf, with the largest number for a tag that those cannot serve.
func (f *Found) Describe(own Found) {
	tags := make(map[string]Counter)
	for _, c := range own.Counters {
		tags[c.Name] = c
	}
	for i := range f.Counters {
		c := &f.Counters[i]
		if tag, ok := tags[c.Name]; ok && c.Own() && c.Skip == "" {
			c.Next, c.Step, c.Options = tag.Next, tag.Step, tag.Options
		}
	}
}

// Merge joins the counters of one name, which servers may share, to the highest of them. It skips
// those with an unknown share: that may be ahead of the others.
func (f *Found) Merge() {
	slices.SortStableFunc(f.Counters, func(a, b Counter) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.System, b.System), strings.Compare(a.Table, b.Table))
	})
	var merged []Counter
	for len(f.Counters) > 0 {
		name := f.Counters[0].Name
		n := slices.IndexFunc(f.Counters, func(c Counter) bool { return c.Name != name })
		if n < 0 {
			n = len(f.Counters)
		}
		merged = append(merged, join(f.Counters[:n]))
		f.Counters = f.Counters[n:]
	}
	f.Counters = merged
}

// join returns the one counter of several with one name.
func join(all []Counter) Counter {
	c := slices.MaxFunc(all, func(a, b Counter) int { return cmp.Compare(a.Next, b.Next) })
	remainders := make(map[int64]bool)
	for _, other := range all {
		c.Skip = cmp.Or(c.Skip, other.Skip)
		c.Step = max(c.Step, other.Step)
		switch {
		case other.System != c.System || other.Table != c.Table:
			c.Skip = cmp.Or(c.Skip, fmt.Sprintf("%s and %s both have a counter of this name: take them over one by one", other.Table, c.Table))
		case other.share.of != c.share.of:
			c.Skip = cmp.Or(c.Skip, fmt.Sprintf("the servers disagree on how many share it: %d or %d", other.share.of, c.share.of))
		}
		remainders[other.share.remainder] = true
	}
	if missing := c.share.of - int64(len(remainders)); missing > 0 && c.share.of > 1 {
		c.Skip = cmp.Or(c.Skip, fmt.Sprintf("%d servers share it, and %d of them are not named here: their counters may be higher", c.share.of, missing))
	}
	return c
}
