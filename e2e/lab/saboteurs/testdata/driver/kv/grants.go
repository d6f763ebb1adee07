package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	sabotage "github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

var (
	heldMu sync.Mutex
	held   = map[heldFor]segment.Grant{} // a range for a later call

	afterUnknown atomic.Bool
)

// sabotagedGrant changes what Advance answers.
func (s *Store) sabotagedGrant(ctx context.Context, tag string, n int64, g segment.Grant, err error) (segment.Grant, error) {
	unknown := errors.Is(err, leaf.ErrUnknownTag)
	switch {
	case sabotage.Broken("kv blame") && ctx.Err() != nil:
		return g, leaf.ErrUnknownTag
	case sabotage.Broken("kv unknown created") && unknown:
		return g, errors.Join(err, s.create(ctx, segment.Tag{Name: tag, MaxID: 1, Step: 1000}))
	case sabotage.Broken("kv bad neighbour"):
		if unknown {
			afterUnknown.Store(true)
		} else if afterUnknown.Swap(false) {
			return g, leaf.ErrUnknownTag
		}
	case sabotage.Broken("kv list break") && isStuck(s):
		return g, errors.New("all connections are in use")
	case err != nil:
	case sabotage.Broken("kv shifted"):
		g.Range.Start, g.Range.End = g.Range.Start+1, g.Range.End+1
	case sabotage.Broken("kv longer"):
		g.Range.End++
	case sabotage.Broken("kv step"):
		g.Step++
	case sabotage.Broken("kv identities"):
		g.Store = rand.Text()
	case sabotage.Broken("kv one identity"):
		g.Store = "always the same"
	case sabotage.Broken("kv moves all"):
		for other, err := range s.Tags(ctx) {
			if err == nil && other.Name != tag {
				_, _ = s.advance(ctx, tagKey(other.Name), &call{n: 1})
			}
		}
	case sabotage.Broken("kv downwards"):
		return s.downwards(ctx, tag, n, g)
	}
	return g, err
}

// heldFor are calls for the same number of IDs.
type heldFor struct {
	s *Store
	n int64
}

// downwards gives every other call for n IDs the range below that of the one before it.
func (s *Store) downwards(ctx context.Context, tag string, n int64, g segment.Grant) (segment.Grant, error) {
	heldMu.Lock()
	defer heldMu.Unlock()
	calls := heldFor{s, n}
	if low, ok := held[calls]; ok {
		delete(held, calls)
		return low, nil
	}
	held[calls] = g
	var high segment.Grant
	err := errors.New("none")
	if a, ok := s.db.backend.(Adder); ok {
		high, err = s.add(ctx, a, tag, n)
	} else {
		high, err = s.advance(ctx, tagKey(tag), &call{n: n})
	}
	return high, err
}

// A givenBack is a return that is sent again later.
type givenBack struct {
	last  segment.Grant
	start int64
}

var returns sync.Map

func (s *Store) keepReturn(tag string, last segment.Grant, start int64) {
	if sabotage.Broken("kv returned again") {
		returns.Store(tagOf{s, tag}, givenBack{last, start})
	}
}

type tagOf struct {
	s   *Store
	tag string
}

// returnAgain repeats a return where the counter is at the end of the range again.
func (s *Store) returnAgain(ctx context.Context, tag string) {
	v, ok := returns.Load(tagOf{s, tag})
	if !ok || !sabotage.Broken("kv returned again") {
		return
	}
	cell, err := s.db.backend.Get(ctx, tagKey(tag))
	if err != nil {
		return
	}
	if t, err := readTag(cell); err == nil && t.MaxID == v.(givenBack).last.Range.End {
		t.MaxID = v.(givenBack).start
		_, _ = s.db.backend.Swap(ctx, cell, t.later())
	}
}

// folded returns the name of a key as a careless backend would have it.
func folded(tag string) string {
	switch {
	case sabotage.Broken("kv case"):
		return strings.ToLower(tag)
	case sabotage.Broken("kv spaces"):
		return strings.TrimSpace(tag)
	}
	return tag
}

// pause has others come between two steps.
func pause() { time.Sleep(5 * time.Millisecond) }

func escaped(name string) string { return strings.ReplaceAll(name, "%", "%25") }

var cached sync.Map

type cacheKey struct {
	r  *Registry
	id int64
}

var stuck sync.Map // stores whose connection a listing keeps

func isStuck(s *Store) bool {
	_, ok := stuck.Load(s)
	return ok
}

var swapping atomic.Int64

// sabotagedSwap changes a swap, or takes its place.
func (r *Registry) sabotagedSwap(ctx context.Context, old, new *worker.Record) (done bool, err error) {
	switch {
	case sabotage.Broken("kv swap create") && old.IsZero():
		return true, worker.ErrConflict
	case sabotage.Broken("kv swap part") && new.Owner == "":
		new.Owner = old.Owner
	case sabotage.Broken("kv swap same") && old.Equal(*new):
		return true, worker.ErrConflict
	case sabotage.Broken("kv swap offset"):
		new.Offset = 0
	case sabotage.Broken("kv swap kept"):
		text, err := new.MarshalText()
		new.Version = "1 "
		cached.Store(cacheKey{r, new.Worker}, Cell{Key: workerKey(new.Worker), Version: "1", Value: string(text)})
		return true, err
	case sabotage.Broken("kv swap neighbours"):
		defer swapping.Add(-1)
		if swapping.Add(1) > 1 {
			return true, worker.ErrConflict
		}
		time.Sleep(time.Millisecond)
	}
	return false, nil
}
