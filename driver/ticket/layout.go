package ticket

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"

	"github.com/leaf-id/leaf"
)

// MaxStride is the largest block, and MaxServers the largest number of servers: more
// MySQL cannot step by.
const (
	MaxStride  = 1 << 30
	MaxServers = 65535
)

// A Layout is how the servers share out the IDs. [DB.Init] chooses it for ever. The zero value is
// Flickr's scheme with one table for all tags.
type Layout struct {
	// TablePerTag gives each tag a table, and so an ID space, of its own. It does
	// not go with Stride, where each tag has one anyway.
	TablePerTag bool

	// Stride is the number of IDs in a block, 1 … [MaxStride]; 0: single tickets.
	Stride int64
}

func (l Layout) check() error {
	switch {
	case l.Stride < 0 || l.Stride > MaxStride:
		return fmt.Errorf("%w: stride %d is not in 1 … %d", leaf.ErrInvalid, l.Stride, MaxStride)
	case l.Stride > 0 && l.TablePerTag:
		return fmt.Errorf("%w: table_per_tag does not go with stride, which keeps a counter per tag without it", leaf.ErrInvalid)
	}
	return nil
}

func (l Layout) String() string {
	switch {
	case l.Stride > 0:
		return fmt.Sprintf("stride=%d", l.Stride)
	case l.TablePerTag:
		return "table_per_tag=true"
	}
	return "single tickets from one table"
}

// sharedTable is Flickr's.
const sharedTable = "Tickets64"

// shared reports whether all tags draw from one table.
func (l Layout) shared() bool { return l.Stride == 0 && !l.TablePerTag }

// tableChars are those of a table's name that need no quotes, on servers that fold case too.
const tableChars = "abcdefghijklmnopqrstuvwxyz0123456789_"

// table returns the name of the table that a tag's tickets come from. It holds
// nothing that would have to be quoted. Names that cannot be part of one are hashed;
// the marker keeps them apart from the others.
func (l Layout) table(tag string) string {
	switch {
	case !l.TablePerTag:
		return sharedTable
	case len(tag) <= 50 && !strings.HasPrefix(tag, "_") && strings.Trim(tag, tableChars) == "":
		return sharedTable + "_" + tag
	}
	sum := sha256.Sum256([]byte(tag))
	return sharedTable + "__" + hex.EncodeToString(sum[:16])
}

// A share is the part of all IDs that one server owns.
type share struct {
	Layout
	servers int64
	number  int64 // of the server, 1 … servers
}

// align returns the lowest ID of the share's blocks from floor on, or the largest int64 without
// such a block.
func (s share) align(floor int64) int64 {
	block := floor / s.Stride
	behind := (s.number - 1 - block%s.servers + s.servers) % s.servers
	switch {
	case behind == 0:
		return floor
	case block > math.MaxInt64/s.Stride-behind:
		return math.MaxInt64
	}
	return (block + behind) * s.Stride
}

// drawn returns one past the highest drawn ID if next is the following one, or 0 before the first.
func (s share) drawn(next int64) int64 {
	switch {
	case next%s.Stride != 0 || next == math.MaxInt64:
		return next
	case next/s.Stride < s.servers:
		return 0
	}
	return next - (s.servers-1)*s.Stride
}

// limit is the largest counter that can still be moved.
func (s share) limit() int64 { return math.MaxInt64 - s.servers*s.Stride }
