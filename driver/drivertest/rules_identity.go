package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leaf-id/leaf/segment"
)

func identityRules() []storeRule {
	return []storeRule{
		{"identity/one", "every grant of a store carries the one identity, whatever the tag and the client", identityOne},
		{"identity/of a fresh store", "a store that is created anew has another identity", identityOfFresh},
		ruleOf("identity/after a change", "a tag that was altered, or deleted and created again, still carries the identity", identityAfterChange, order),
	}
}

// identity checks that all grants have one identity, or that a store without one has none.
func (b *fixture) identity(of string, grants ...segment.Grant) error {
	for _, g := range grants {
		switch {
		case b.Caps.NoIdentity && g.Store != "":
			return fmt.Errorf("%s: the identity %q of a store that has no place for one", of, g.Store)
		case !b.Caps.NoIdentity && g.Store == "":
			return errors.New(of + ": the grant carries no identity")
		case g.Store != grants[0].Store:
			return fmt.Errorf("%s: the identity %q, and then %q", of, grants[0].Store, g.Store)
		}
	}
	return nil
}

func identityOne(ctx context.Context, b *fixture) error {
	user := segment.Tag{Name: "user", MaxID: 7, Step: 10}
	s, err := b.openWith(ctx, order, user)
	if err != nil {
		return err
	}
	var grants []segment.Grant
	for range 2 {
		for _, tag := range []string{order.Name, user.Name} {
			for _, n := range []int64{0, 1, 100} {
				g, err := s.Advance(ctx, tag, n)
				if err != nil {
					return err
				}
				grants = append(grants, g)
			}
		}
		if s, err = b.reopen(s); err != nil {
			return err
		}
	}
	return b.identity("all grants", grants...)
}

func identityOfFresh(ctx context.Context, b *fixture) error {
	var known []string
	for range 2 {
		s, err := b.openWith(ctx, order)
		if err != nil {
			return err
		}
		g, err := s.Advance(ctx, order.Name, 1)
		if err != nil {
			return err
		}
		if slices.Contains(known, g.Store) && g.Store != "" {
			return fmt.Errorf("two stores have the identity %q", g.Store)
		}
		known = append(known, g.Store)
		b.StoreBackend = b.fresh(b.t)
	}
	return nil
}

func identityAfterChange(ctx context.Context, b *fixture, c catalog) error {
	before, err1 := c.Advance(ctx, order.Name, 1)
	_, err2 := c.Alter(ctx, order.Name, segment.Change{Step: new(int64(10))})
	altered, err3 := c.Advance(ctx, order.Name, 1)
	if err := first(err1, err2, err3, c.Delete(ctx, order.Name), c.Create(ctx, order)); err != nil {
		return err
	}
	again, err := c.Advance(ctx, order.Name, 1)
	if err != nil {
		return err
	}
	return b.identity("before and after", before, altered, again)
}
