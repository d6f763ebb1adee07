// Package entid has ent give new entities IDs of a tag.
package entid

import (
	"context"
	"fmt"

	"entgo.io/ent"

	"github.com/leaf-id/leaf"
)

// Hook returns a hook for schemas whose field id is an int64. Use it in Hooks of a schema, or
// with client.Use.
func Hook(ids leaf.Generator) ent.Hook {
	return func(next ent.Mutator) ent.Mutator {
		return ent.MutateFunc(func(ctx context.Context, m ent.Mutation) (ent.Value, error) {
			if m.Op().Is(ent.OpCreate) {
				if err := setID(ctx, m, ids); err != nil {
					return nil, err
				}
			}
			return next.Mutate(ctx, m)
		})
	}
}

func setID(ctx context.Context, m ent.Mutation, ids leaf.Generator) error {
	mutation, ok := m.(interface {
		ID() (int64, bool)
		SetID(int64)
	})
	if !ok {
		return fmt.Errorf("the ID of %s is not an int64", m.Type())
	}
	if _, set := mutation.ID(); set {
		return nil
	}
	id, err := ids.Next(ctx)
	if err == nil {
		mutation.SetID(id)
	}
	return err
}
