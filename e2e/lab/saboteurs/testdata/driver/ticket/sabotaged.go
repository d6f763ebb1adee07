package ticket

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
)

var (
	stuck        sync.Map // stores whose connection a listing keeps
	afterUnknown atomic.Bool
	lastMu       sync.Mutex
	last         = map[*Store]segment.Grant{}
)

// sabotagedAdvance changes what Advance does.
func (s *Store) sabotagedAdvance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	_, isStuck := stuck.Load(s)
	switch {
	case sabotage.Broken("ticket negative"):
		n = max(n, -n)
	case sabotage.Broken("ticket impossible names") && segment.CheckKnown(tag) != nil:
		return segment.Grant{}, errors.New("the server refuses the text")
	case sabotage.Broken("ticket case"):
		tag = strings.ToLower(strings.TrimSpace(tag))
	case sabotage.Broken("ticket list break") && isStuck:
		return segment.Grant{}, errors.New("all connections are in use")
	}
	g, err := s.advance(ctx, tag, n)
	unknown := errors.Is(err, leaf.ErrUnknownTag)
	switch {
	case sabotage.Broken("ticket blame") && ctx.Err() != nil:
		return g, leaf.ErrUnknownTag
	case sabotage.Broken("ticket unknown created") && unknown:
		return g, errors.Join(err, s.Create(ctx, segment.Tag{Name: tag, MaxID: 1, Step: 1000}))
	case sabotage.Broken("ticket overflow") && errors.Is(err, leaf.ErrOverflow):
		return segment.Grant{Range: leaf.Range{Start: 1, End: 2}, Step: 1}, nil
	case sabotage.Broken("ticket bad neighbour"):
		if unknown {
			afterUnknown.Store(true)
		} else if afterUnknown.Swap(false) {
			return g, leaf.ErrUnknownTag
		}
	case err != nil:
	case sabotage.Broken("ticket longer"):
		g.Range.End = g.Range.Start + max(n, g.Step) + 1
	case sabotage.Broken("ticket step"):
		g.Step++
	case sabotage.Broken("ticket identity"):
		g.Store = rand.Text()
	case sabotage.Broken("ticket one identity"):
		g.Store = "always the same"
	case sabotage.Broken("ticket again"):
		lastMu.Lock()
		defer lastMu.Unlock()
		if again, ok := last[s]; ok {
			g = again
		}
		last[s] = g
	}
	return g, err
}

// sabotagedTag changes what a listing says.
func sabotagedTag(tag segment.Tag) segment.Tag {
	if sabotage.Broken("ticket list names") {
		tag.Name = strings.ReplaceAll(tag.Name, "%", "%25")
	}
	if sabotage.Broken("ticket updated") {
		tag.Updated = time.Now().Add(time.Hour)
	}
	return tag
}
