package client

import (
	"context"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/leafconn"
)

// Ordered returns a generator that makes a call for each Next and each Take and keeps no stock, for
// IDs that increase over all programs, as those of one server do. The scheme is "segment", whose
// key is a tag, "snowflake", "uid" or "ticket"; empty means "segment".
//
// While no server answers its errors wrap [leaf.ErrExhausted]. A call ends with its context, or
// after each server had [Options.CallTimeout].
//
// A call that repeats after a slow or lost answer may bring IDs of another server. If the order
// matters more than an answer, name one server, or switch [Options.Hedge] off.
func (c *Client) Ordered(scheme, key string) leaf.Generator { return ordered{c.conn, scheme, key} }

type ordered struct {
	conn        *leafconn.Conn
	scheme, key string
}

func (o ordered) Next(ctx context.Context) (int64, error) {
	ranges, err := o.conn.Take(ctx, o.scheme, o.key, 1)
	if err != nil {
		return 0, err
	}
	return ranges[0].Start, nil
}

func (o ordered) Take(ctx context.Context, dst []leaf.Range, n int) ([]leaf.Range, error) {
	ranges, err := o.conn.Take(ctx, o.scheme, o.key, n)
	return append(dst, ranges...), err
}
