package drivertest

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/leaf-id/leaf"
)

// Ranges collects ranges of one ID space and finds those that overlap. The zero
// value is empty and ready; its methods are safe for concurrent use.
type Ranges struct {
	mu  sync.Mutex
	all []leaf.Range
}

// Add records handed out ranges.
func (c *Ranges) Add(ranges ...leaf.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, ranges...)
}

// Sorted returns a copy of the recorded ranges, by start.
func (c *Ranges) Sorted() []leaf.Range {
	c.mu.Lock()
	defer c.mu.Unlock()
	sorted := slices.Clone(c.all)
	slices.SortFunc(sorted, func(a, b leaf.Range) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	return sorted
}

// Count returns the number of IDs in all recorded ranges together.
func (c *Ranges) Count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var n int64
	for _, r := range c.all {
		n += r.Len()
	}
	return n
}

// Check returns an error that names the lowest two ranges with an ID in common and
// counts the duplicates, or names a range that holds no ID or a negative one.
func (c *Ranges) Check() error {
	sorted := c.Sorted()
	var all, duplicates, end int64
	var lowest string
	for i, r := range sorted {
		if r.Empty() || r.Start < 0 {
			return fmt.Errorf("%v is not a range of IDs", r)
		}
		if i > 0 && sorted[i-1].Overlaps(r) && lowest == "" {
			lowest = fmt.Sprintf("%v and %v overlap", sorted[i-1], r)
		}
		duplicates += max(min(end, r.End)-r.Start, 0)
		end = max(end, r.End)
		all += r.Len()
	}
	if lowest != "" {
		return fmt.Errorf("handed out twice: %s (%d of %d IDs were issued before)", lowest, duplicates, all)
	}
	return nil
}

// CheckExactly is [Ranges.Check], and also returns an error unless the ranges
// together are want, without a gap.
func (c *Ranges) CheckExactly(want leaf.Range) error {
	if err := c.Check(); err != nil {
		return err
	}
	next := want.Start
	for _, r := range c.Sorted() {
		if r.Start != next {
			return fmt.Errorf("handed out %v where %d was next", r, next)
		}
		next = r.End
	}
	if next != want.End {
		return fmt.Errorf("handed out up to %d, want up to %d", next, want.End)
	}
	return nil
}

// IDs collects single IDs, tens of millions of them, and finds duplicates. The zero value is empty
// and ready. It takes 8 bytes an ID, and as much again while it checks.
type IDs struct {
	mu     sync.Mutex
	shards []*IDShard
}

// An IDShard is one goroutine's part of an [IDs].
type IDShard struct {
	ids []int64
}

// Shard returns a part for one goroutine to add to without a lock. It is safe for concurrent use.
func (c *IDs) Shard() *IDShard {
	s := new(IDShard)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shards = append(c.shards, s)
	return s
}

// Add records IDs.
func (s *IDShard) Add(ids ...int64) { s.ids = append(s.ids, ids...) }

// AddRange records every ID of r.
func (s *IDShard) AddRange(r leaf.Range) {
	s.ids = slices.Grow(s.ids, int(r.Len()))
	for id := r.Start; id < r.End; id++ {
		s.ids = append(s.ids, id)
	}
}

// Count returns the number of IDs recorded. It must not run while a shard is added to.
func (c *IDs) Count() int {
	n := 0
	for _, s := range c.shards {
		n += len(s.ids)
	}
	return n
}

// Check returns an error that counts the duplicates and names the lowest. It must
// not run while a shard is added to.
func (c *IDs) Check() error {
	all := make([]int64, 0, c.Count())
	for _, s := range c.shards {
		all = append(all, s.ids...)
	}
	slices.Sort(all)
	duplicates, first := 0, int64(0)
	for i := 1; i < len(all); i++ {
		if all[i] != all[i-1] {
			continue
		}
		if duplicates == 0 {
			first = all[i]
		}
		duplicates++
	}
	if duplicates > 0 {
		return fmt.Errorf("%d of %d IDs were issued before, the lowest of them %d", duplicates, len(all), first)
	}
	return nil
}
