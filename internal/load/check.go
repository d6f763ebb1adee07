package load

import "sync"

// A checker compares all IDs of a run. Clients hand theirs over in batches, and one
// goroutine does the work, so that no client waits for it.
type checker struct {
	spaces []*space // by key; keys of one ID space have the same
	memory int64    // the bound, in bytes

	in    chan *batch
	spare sync.Pool // of *batch
	done  chan struct{}
	close func() Check // waits for all batches

	check Check
}

const (
	batchSize     = 4096 // ranges and UUIDs that a client collects
	queuedBatches = 64
	exampleCount  = 10 // duplicates named in the result
)

// A batch is a client's received IDs, for one or several keys.
type batch struct {
	items []item
	n     int // ranges and UUIDs
}

// An item has the received IDs of one key.
type item struct {
	key int
	ids IDs
}

func newChecker(keys []Key, memory int64) *checker {
	c := &checker{memory: memory, check: Check{Examples: []string{}}, in: make(chan *batch, queuedBatches), done: make(chan struct{})}
	named := map[string]*space{}
	for _, key := range keys {
		if named[key.Space] == nil {
			named[key.Space] = newSpace(key.Space)
		}
		c.spaces = append(c.spaces, named[key.Space])
	}
	c.spare.New = func() any { return new(batch) }
	c.close = sync.OnceValue(func() Check {
		close(c.in)
		<-c.done
		return c.check
	})
	go c.work()
	return c
}

func (c *checker) work() {
	defer close(c.done)
	for b := range c.in {
		for i := range b.items {
			c.compare(c.spaces[b.items[i].key], &b.items[i].ids)
		}
		b.clear()
		c.spare.Put(b)
	}
	for _, s := range c.spaces {
		before := s.memory
		s.compress()
		c.check.Memory += s.memory - before
	}
}

func (c *checker) compare(s *space, ids *IDs) {
	keep := c.check.Memory < c.memory
	before := s.memory
	s.numbers(ids.Ranges, keep, &c.check)
	s.texts(ids.UUIDs, keep, &c.check)
	c.check.Memory += s.memory - before
	c.check.Checked += ids.Len()
	if keep {
		c.check.Kept += ids.Len()
	}
}

// A feed collects what one client receives.
type feed struct {
	*checker
	batch *batch
}

func (c *checker) feed() *feed { return &feed{c, c.spare.Get().(*batch)} }

// add takes a copy of ids.
func (f *feed) add(key int, ids *IDs) {
	f.batch.add(key, ids)
	if f.batch.n >= batchSize {
		f.flush()
		f.batch = f.spare.Get().(*batch)
	}
}

// flush hands over the collected IDs. It is the last call.
func (f *feed) flush() { f.in <- f.batch }

func (b *batch) add(key int, ids *IDs) {
	known := b.of(key)
	b.n -= known.pieces()
	known.Join(ids)
	b.n += known.pieces()
}

// of returns the received IDs of a key.
func (b *batch) of(key int) *IDs {
	for i := range b.items {
		if b.items[i].key == key {
			return &b.items[i].ids
		}
	}
	b.items = append(b.items, item{key: key})
	return &b.items[len(b.items)-1].ids
}

// clear keeps the memory of a batch for the next one, unless large answers have made much of it.
func (b *batch) clear() {
	if b.n > 2*batchSize || len(b.items) > 1 {
		b.items = nil
	}
	for i := range b.items {
		b.items[i].ids.reset()
	}
	b.n = 0
}

func (ids *IDs) pieces() int { return len(ids.Ranges) + len(ids.UUIDs) }
