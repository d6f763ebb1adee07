package drivertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

func sharingRules() []storeRule {
	return []storeRule{
		ruleOf("sharing/64 goroutines", "64 goroutines on one tag get ranges that never overlap and leave no gap", manyGoroutines, order),
		{"sharing/several clients", "independent clients on one tag and on many get ranges that never overlap", severalClients},
		ruleOf("sharing/only upwards", "one caller's ranges only go up, also while others take some in between", onlyUpwards, order),
		ruleOf("sharing/unknown tag among good ones", "a call that fails for its tag disturbs none of those under way with it", badAmongGood, order),
	}
}

func manyGoroutines(ctx context.Context, b *fixture, s segment.Store) error {
	var got Ranges
	if err := together(64, func(i int) error {
		return take(ctx, s, "order", &got, 1, 10, int64(i+1), 0, 3, 7, 1, 100)
	}); err != nil {
		return err
	}
	if b.Caps.Units {
		return got.Check()
	}
	return got.CheckExactly(leaf.Range{Start: 1, End: 1 + got.Count()})
}

// take advances tag once by each n and records the ranges.
func take(ctx context.Context, s segment.Store, tag string, got *Ranges, ns ...int64) error {
	for _, n := range ns {
		grant, err := s.Advance(ctx, tag, n)
		if err != nil {
			return fmt.Errorf("advance %q by %d: %w", tag, n, err)
		}
		if n > 0 && grant.Range.Len() > n {
			return fmt.Errorf("advance %q by %d: got %v, which is more", tag, n, grant.Range)
		}
		got.Add(grant.Range)
	}
	return nil
}

func severalClients(ctx context.Context, b *fixture) error {
	const clients, each = 4, 4
	tags := []segment.Tag{order, {Name: "a", MaxID: 0, Step: 1}, {Name: "b", MaxID: 1 << 40, Step: 10}, {Name: "c", MaxID: 7, Step: 100}}
	stores := make([]segment.Store, clients)
	for i := range stores {
		stores[i] = b.open()
	}
	for _, tag := range tags {
		if err := b.create(ctx, stores[0], tag); err != nil {
			return err
		}
	}
	got := make([]Ranges, len(tags))
	err := together(clients*each, func(i int) error {
		for round := range 4 {
			for j, tag := range tags {
				if err := take(ctx, stores[i%clients], tag.Name, &got[j], int64(round), int64(i)); err != nil {
					return err
				}
			}
		}
		return take(ctx, stores[i%clients], "order", &got[0], 1, 0, 5)
	})
	for j, tag := range tags {
		if err != nil {
			break
		}
		if err = got[j].Check(); err == nil && !b.Caps.Units {
			err = got[j].CheckExactly(leaf.Range{Start: tag.MaxID, End: tag.MaxID + got[j].Count()})
		}
	}
	return err
}

func onlyUpwards(ctx context.Context, b *fixture, s segment.Store) error {
	stores := []segment.Store{s, b.open(), b.open()}
	return together(6, func(i int) error {
		last := make(map[string]leaf.Range)
		for range 15 {
			got, err := stores[i%len(stores)].Advance(ctx, "order", int64(i))
			if err != nil {
				return err
			}
			if was := last[got.Source]; got.Range.Start < was.End {
				return fmt.Errorf("got %v after %v", got.Range, was)
			}
			last[got.Source] = got.Range
		}
		return nil
	})
}

func badAmongGood(ctx context.Context, b *fixture, s segment.Store) error {
	var got Ranges
	err := together(32, func(i int) error {
		for range 6 {
			if i%2 == 0 {
				if err := take(ctx, s, "order", &got, 10); err != nil {
					return err
				}
				continue
			}
			name, want := "nothing", leaf.ErrUnknownTag
			if i%4 == 1 {
				name, want = badNames[i%len(badNames)], leaf.ErrInvalid
			}
			if _, err := s.Advance(ctx, name, 0); !errors.Is(err, want) && !errors.Is(err, leaf.ErrUnknownTag) {
				return fmt.Errorf("advance %.20q: got error %v", name, err)
			}
		}
		return nil
	})
	return first(err, got.Check())
}
