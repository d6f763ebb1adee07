package sqldb

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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
	stuck        sync.Map // stores whose connection a listing keeps
	returns      sync.Map
	cached       sync.Map
	swapping     atomic.Int64
)

func (s *Store) keepConnection() {
	if sabotage.Broken("sql list break") {
		stuck.Store(s, true)
	}
}

func escaped(name string) string { return strings.ReplaceAll(name, "%", "%25") }

// sabotagedAdvance changes what Advance does.
func (s *Store) sabotagedAdvance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if sabotage.Broken("sql negative") {
		n = max(n, -n)
	}
	s.returnAgain(ctx, tag)
	grant, err := s.reallyAdvance(ctx, tag, n)
	if sabotage.Broken("sql impossible names") && segment.CheckKnown(tag) != nil {
		return grant, errors.New("the server refuses the text")
	}
	if sabotage.Broken("sql overflow") && errors.Is(err, leaf.ErrOverflow) {
		return segment.Grant{Range: leaf.Range{Start: 1 << 62, End: 1<<62 + 1}, Step: 1}, nil
	}
	return s.sabotagedGrant(ctx, tag, n, grant, err)
}

// sabotagedGrant changes what Advance answers.
func (s *Store) sabotagedGrant(ctx context.Context, tag string, n int64, g segment.Grant, err error) (segment.Grant, error) {
	unknown := errors.Is(err, leaf.ErrUnknownTag)
	_, isStuck := stuck.Load(s)
	switch {
	case sabotage.Broken("sql blame") && ctx.Err() != nil:
		return g, leaf.ErrUnknownTag
	case sabotage.Broken("sql unknown created") && unknown:
		return g, errors.Join(err, s.Create(ctx, segment.Tag{Name: tag, MaxID: 1, Step: 1000}))
	case sabotage.Broken("sql bad neighbour"):
		if unknown {
			afterUnknown.Store(true)
		} else if afterUnknown.Swap(false) {
			return g, leaf.ErrUnknownTag
		}
	case sabotage.Broken("sql list break") && isStuck:
		return g, errors.New("all connections are in use")
	case err != nil:
	case sabotage.Broken("sql shifted"):
		g.Range.Start, g.Range.End = g.Range.Start+1, g.Range.End+1
	case sabotage.Broken("sql longer"):
		g.Range.End++
	case sabotage.Broken("sql step"):
		g.Step++
	case sabotage.Broken("sql identities"):
		g.Store = rand.Text()
	case sabotage.Broken("sql one identity"):
		g.Store = "always the same"
	case sabotage.Broken("sql moves all"):
		for other, err := range s.Tags(ctx) {
			if err == nil && other.Name != tag {
				_, _ = s.db.Advance(ctx, other.Name, 1)
			}
		}
	case sabotage.Broken("sql downwards"):
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
	return s.db.Advance(ctx, tag, n)
}

type tagOf struct {
	s   *Store
	tag string
}

// A givenBack is a return that is sent again later.
type givenBack struct {
	last  segment.Grant
	start int64
}

func (s *Store) keepReturn(tag string, last segment.Grant, start int64) {
	if sabotage.Broken("sql returned again") {
		returns.Store(tagOf{s, tag}, givenBack{last, start})
	}
}

// returnAgain repeats a return where the counter is at the end of the range again.
func (s *Store) returnAgain(ctx context.Context, tag string) {
	v, ok := returns.Load(tagOf{s, tag})
	if !ok || !sabotage.Broken("sql returned again") {
		return
	}
	for t, err := range s.Tags(ctx) {
		if err == nil && t.Name == tag && t.MaxID == v.(givenBack).last.Range.End {
			_, _ = s.Alter(ctx, tag, segment.Change{MaxID: &[]int64{v.(givenBack).start}[0], Force: true})
		}
	}
}

type cacheKey struct {
	r  *Registry
	id int64
}

// sabotagedSwap changes a swap, or takes its place.
func (r *Registry) sabotagedSwap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	conflict := fmt.Errorf("swap worker %d: %w", new.Worker, worker.ErrConflict)
	switch {
	case sabotage.Broken("sql swap create") && old.IsZero():
		return worker.Record{}, conflict
	case sabotage.Broken("sql swap part") && new.Owner == "":
		new.Owner = old.Owner
	case sabotage.Broken("sql swap same") && old.Equal(new):
		return worker.Record{}, conflict
	case sabotage.Broken("sql swap offset"):
		new.Offset = 0
	case sabotage.Broken("sql swap unchecked") && old.Worker != new.Worker:
		old.Worker = new.Worker
	case sabotage.Broken("sql swap neighbours"):
		defer swapping.Add(-1)
		if swapping.Add(1) > 1 {
			return worker.Record{}, conflict
		}
		time.Sleep(time.Millisecond)
	case sabotage.Broken("sql swap any"), sabotage.Broken("sql swap repeated"):
		found, err := r.Load(ctx, new.Worker)
		if err != nil {
			return found, err
		}
		if sabotage.Broken("sql swap repeated") {
			if found.Equal(new) {
				return found, nil
			}
			break
		}
		old = found
	}
	if sabotage.Broken("sql swap kept") {
		cached.Store(cacheKey{r, new.Worker}, new)
		return new, nil
	}
	got, err := r.reallySwap(ctx, old, new)
	switch {
	case sabotage.Broken("sql swap interrupted") && ctx.Err() != nil && !errors.Is(err, worker.ErrConflict):
		return new, nil
	case sabotage.Broken("sql swap won") && errors.Is(err, worker.ErrConflict):
		return new, nil
	case sabotage.Broken("sql swap version") && old.Version != "" && err == nil:
		got.Version = old.Version
	}
	return got, err
}

func sabotagedList(all []worker.Record) []worker.Record {
	if sabotage.Broken("sql unsorted") {
		slices.SortFunc(all, func(a, b worker.Record) int { return cmp.Compare(fmt.Sprint(a.Worker), fmt.Sprint(b.Worker)) })
	}
	if sabotage.Broken("sql many") && len(all) > 256 {
		all = all[:256]
	}
	return all
}
