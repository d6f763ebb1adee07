package client

import (
	"context"
	"fmt"
	"time"
)

// Peek returns the ID that [Client.Next] would return if no other call came first, without taking
// it. Without a stock the program asks a server; the token needs the right to read.
func (c *Client) Peek(ctx context.Context, tag string) (int64, error) {
	for _, st := range c.set.Stats() {
		if st.Tag != tag {
			continue
		}
		for _, s := range st.Segments {
			if s.Next < s.Range.End {
				return s.Next, nil
			}
		}
	}
	id, err := c.conn.Peek(ctx, tag)
	if err != nil {
		return 0, fmt.Errorf("peek at tag %q: %w", tag, err)
	}
	return id, nil
}

// An Observed is the result of [Client.Observe].
type Observed struct {
	MaxID   int64 // one past the highest ID that the store has allocated to anyone
	Dropped int64 // how many IDs this program and the servers dropped from memory

	// Other servers and programs may issue IDs below OthersBelow, which they held before; 0:
	// they cannot. OthersFor is how long such a stock lasts a busy server.
	OthersBelow int64
	OthersFor   time.Duration
}

// Observe records that IDs of a tag up to a largest one are in use, inserted by hand. The counter
// moves above them, and never down. This program and all servers of the URL drop their stock below,
// including the blocks of cursors. The token needs the right to administer. After an error some
// servers may not know: call it again.
func (c *Client) Observe(ctx context.Context, tag string, largest int64) (Observed, error) {
	all, err := c.conn.Observe(ctx, tag, largest)
	o := Observed{MaxID: all.Tag.MaxID, Dropped: all.Dropped, OthersBelow: all.OthersBelow, OthersFor: all.OthersFor}
	if o.MaxID > largest { // otherwise the servers continue to grant IDs below
		o.Dropped += c.set.Server().DropBelow(tag, largest+1)
	}
	if err != nil {
		err = fmt.Errorf("observe %d of tag %q: %w", largest, tag, err)
	}
	return o, err
}
