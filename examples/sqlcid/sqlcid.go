// Package sqlcid takes the ID of a row before it calls a query that sqlc has generated.
package sqlcid

import (
	"context"

	"github.com/leaf-id/leaf"
)

// CreateOrderParams is as sqlc generates it for
//
//	-- name: CreateOrder :exec
//	INSERT INTO orders (id, item) VALUES (?, ?);
type CreateOrderParams struct {
	ID   int64
	Item string
}

// Queries has the methods of the generated type of that name.
type Queries interface {
	CreateOrder(ctx context.Context, arg CreateOrderParams) error
}

// Orders creates orders.
type Orders struct {
	Queries Queries
	IDs     leaf.Generator
}

// Create adds an order and returns its ID. The ID is known before the row is written, so the
// call may be repeated with it.
func (o Orders) Create(ctx context.Context, item string) (int64, error) {
	id, err := o.IDs.Next(ctx)
	if err != nil {
		return 0, err
	}
	return id, o.Queries.CreateOrder(ctx, CreateOrderParams{ID: id, Item: item})
}
