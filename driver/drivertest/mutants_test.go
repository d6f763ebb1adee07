package drivertest

import (
	"context"
	"errors"
	"iter"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
)

// roundTrip is a broken store's pause between two steps that should be one.
const roundTrip = 200 * time.Microsecond

// find returns the tag as it stands.
func find(s *kv.Store, name string) (segment.Tag, bool) {
	for tag := range s.Tags(context.Background()) {
		if tag.Name == name {
			return tag, true
		}
	}
	return segment.Tag{}, false
}

// set moves a counter from any value.
func set(s *kv.Store, name string, maxID int64) error {
	_, err := s.Alter(context.Background(), name, segment.Change{MaxID: &maxID, Force: true})
	return err
}

// readThenWrite advances in two steps that others can come between.
func readThenWrite(s *kv.Store) advanceFunc {
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		t, ok := find(s, tag)
		if !ok {
			return segment.Grant{}, leaf.ErrUnknownTag
		}
		if n == 0 {
			n = t.Step
		}
		time.Sleep(roundTrip)
		return segment.Grant{Range: leaf.Range{Start: t.MaxID, End: t.MaxID + n}, Step: t.Step}, set(s, tag, t.MaxID+n)
	}
}

// writeBehind stores a range only at the next request.
func writeBehind(s *kv.Store) advanceFunc {
	var mu sync.Mutex
	next := make(map[string]int64)
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		if at, ok := next[tag]; ok {
			_ = set(s, tag, at)
		}
		grant, err := s.Advance(ctx, tag, n)
		if err != nil {
			return grant, err
		}
		next[tag] = grant.Range.End
		return grant, set(s, tag, grant.Range.Start)
	}
}

// hoard takes blocks and deals from them.
func hoard(s *kv.Store) advanceFunc {
	var mu sync.Mutex
	var block leaf.Range
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 || n > 100 {
			return s.Advance(ctx, tag, n)
		}
		if block.Len() < n {
			grant, err := s.Advance(ctx, tag, 10000)
			if err != nil {
				return grant, err
			}
			block = grant.Range
		}
		dealt := leaf.Range{Start: block.Start, End: block.Start + n}
		block.Start += n
		return segment.Grant{Range: dealt, Step: 2000}, nil
	}
}

// undo takes back the allocation of a call whose context has ended meanwhile.
func undo(s *kv.Store) advanceFunc {
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		grant, err := s.Advance(ctx, tag, n)
		if err == nil {
			time.Sleep(roundTrip)
			if ctx.Err() != nil {
				_ = set(s, tag, grant.Range.Start)
				return segment.Grant{}, ctx.Err()
			}
		}
		return grant, err
	}
}

// hangover fails the call that follows one for an unknown tag.
func hangover(s *kv.Store) advanceFunc {
	var mu sync.Mutex
	var sick bool
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		grant, err := s.Advance(ctx, tag, n)
		mu.Lock()
		defer mu.Unlock()
		if was := sick; was && err == nil {
			sick = false
			return grant, errors.New("the transaction was aborted")
		}
		sick = errors.Is(err, leaf.ErrUnknownTag)
		return grant, err
	}
}

// staleStep remembers the first step that it saw.
func staleStep(s *kv.Store) advanceFunc {
	var mu sync.Mutex
	var step int64
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		grant, err := s.Advance(ctx, tag, n)
		mu.Lock()
		defer mu.Unlock()
		if step == 0 {
			step = grant.Step
		}
		grant.Step = step
		return grant, err
	}
}

// repeatReturn sends a return again in front of the next call of its client.
func repeatReturn(s *kv.Store) segment.Store {
	var mu sync.Mutex
	var again func()
	return &broken{
		Store: s,
		giveBack: func(ctx context.Context, tag string, last segment.Grant, start int64) error {
			mu.Lock()
			defer mu.Unlock()
			again = func() { // by the counter's value, as it has to be to do harm
				if t, _ := find(s, tag); t.MaxID == last.Range.End {
					_ = set(s, tag, start)
				}
			}
			return s.Return(ctx, tag, last, start)
		},
		advance: func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			mu.Lock()
			defer mu.Unlock()
			if again != nil {
				again()
				again = nil
			}
			return s.Advance(ctx, tag, n)
		},
	}
}

// downwards deals the upper half of its range before the lower one.
func downwards(s *kv.Store) advanceFunc {
	var mu sync.Mutex
	var kept []segment.Grant
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(kept) > 0 {
			grant := kept[0]
			kept = nil
			return grant, nil
		}
		low, err := s.Advance(ctx, tag, max(n, 1))
		if err != nil {
			return low, err
		}
		kept = append(kept, low)
		return s.Advance(ctx, tag, max(n, 1))
	}
}

// wasteful tries the store out before it is first used.
func wasteful(s *kv.Store) advanceFunc {
	var once sync.Once
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		once.Do(func() { _, _ = s.Advance(ctx, tag, 1) })
		return s.Advance(ctx, tag, n)
	}
}

func clamp(s *kv.Store) advanceFunc {
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		grant, err := s.Advance(ctx, tag, n)
		if t, _ := find(s, tag); errors.Is(err, leaf.ErrOverflow) {
			return s.Advance(ctx, tag, math.MaxInt64-t.MaxID)
		}
		return grant, err
	}
}

func wrapAround(s *kv.Store) advanceFunc {
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		grant, err := s.Advance(ctx, tag, n)
		if errors.Is(err, leaf.ErrOverflow) {
			_ = set(s, tag, 0)
		}
		return grant, err
	}
}

func createMissing(s *kv.Store) advanceFunc {
	return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		_ = s.Create(ctx, segment.Tag{Name: tag, Step: 1})
		return s.Advance(ctx, tag, n)
	}
}

// tweak changes the arguments or the result of Advance.
func tweak(in func(ctx *context.Context, tag *string, n *int64), out func(*segment.Grant, *error)) func(*kv.Store) segment.Store {
	return onAdvance(func(s *kv.Store) advanceFunc {
		return func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
			if in != nil {
				in(&ctx, &tag, &n)
			}
			grant, err := s.Advance(ctx, tag, n)
			if out != nil {
				out(&grant, &err)
			}
			return grant, err
		}
	})
}

func eachTag(edit func(segment.Tag) []segment.Tag) func(*kv.Store) segment.Store {
	return onTags(func(s *kv.Store) tagsFunc {
		return func(ctx context.Context) iter.Seq2[segment.Tag, error] {
			return func(yield func(segment.Tag, error) bool) {
				for tag, err := range s.Tags(ctx) {
					for _, t := range edit(tag) {
						if !yield(t, err) {
							return
						}
					}
				}
			}
		}
	})
}

// leakyTags keeps one of a few connections at an unfinished listing.
func leakyTags(s *kv.Store) segment.Store {
	var mu sync.Mutex
	free := 10
	b := &broken{Store: s}
	b.tags = func(ctx context.Context) iter.Seq2[segment.Tag, error] {
		return func(yield func(segment.Tag, error) bool) {
			for tag, err := range s.Tags(ctx) {
				if !yield(tag, err) {
					mu.Lock()
					free--
					mu.Unlock()
					return
				}
			}
		}
	}
	b.advance = func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		if free <= 0 {
			return segment.Grant{}, errors.New("no connection left")
		}
		return s.Advance(ctx, tag, n)
	}
	return b
}

func fold(name string) string {
	return strings.NewReplacer("é", "e", "É", "e", "e\u0301", "e").Replace(strings.ToLower(name))
}

func wrongZone(t segment.Tag) []segment.Tag {
	t.Updated = t.Updated.Add(8 * time.Hour)
	return []segment.Tag{t}
}

// countWrites takes back by how many times a tag was advanced since it was created.
func countWrites(s *kv.Store) segment.Store {
	var mu sync.Mutex
	b := &broken{Store: s}
	b.create = func(ctx context.Context, tag segment.Tag) error {
		tag.Options = segment.Describe("0")
		return s.Create(ctx, tag)
	}
	b.advance = func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		t, _ := find(s, tag)
		grant, err := s.Advance(ctx, tag, n)
		if err == nil {
			grant.Version = t.Options.Description() + "+1"
			_, err = s.Alter(ctx, tag, segment.Change{Options: segment.Describe(grant.Version)})
		}
		return grant, err
	}
	b.giveBack = func(_ context.Context, tag string, last segment.Grant, start int64) error {
		mu.Lock()
		defer mu.Unlock()
		if t, _ := find(s, tag); t.MaxID != last.Range.End || t.Options.Description() != last.Version {
			return errors.New("moved on")
		}
		return set(s, tag, start)
	}
	return b
}
