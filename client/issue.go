package client

import (
	"context"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// A Request names IDs for [Client.Issue].
type Request struct {
	Scheme string // empty: segment
	Key    string
	Period string // of a tag with periods: the first day of one, YYYY-MM-DD; empty: the present one
	Form   bool   // texts, as the tag's form writes the numbers
	Count  int
}

// An Answer has the IDs of a [Request], as the server gives them.
type Answer struct {
	Ranges []leaf.Range
	Texts  []string // in place of Ranges, where the IDs are text
	Period string   // that the numbers belong to; empty: the tag has no periods
}

// Issue makes one call to a server for each request and keeps no stock: for text IDs, for
// the texts of a tag with a form, and for tags whose numbers start again with each period. Its errors are those of [Client.Ordered]; it
// does not ask a second server while the first one takes long.
func (c *Client) Issue(ctx context.Context, r Request) (Answer, error) {
	got, err := c.conn.Issue(ctx, &leafv1.TakeRequest{Scheme: r.Scheme, Key: r.Key, Period: r.Period, Form: r.Form}, r.Count)
	return Answer(got), err
}
