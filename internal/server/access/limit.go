package access

import (
	"cmp"
	"container/list"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/issuer"
)

// Limits are those of a server. They count IDs, not requests, in its memory alone: another server
// does not know them, and a restart forgets them. Client is the limit of each token, or of each
// address without one, and Tags those of each matching tag; all matching ones count.
type (
	Limits = config.Limits
	Limit  = config.Limit
)

func burst(l Limit) int { return int(cmp.Or(l.Burst, l.Rate)) }

// A bucket counts the IDs under one limit.
type bucket struct {
	limit Limit // never changes
	rate  *rate.Limiter

	mu   sync.Mutex
	day  int64 // since 1970
	used int64 // on that day
}

func newBucket(l Limit) *bucket {
	b := &bucket{limit: l}
	if l.Rate > 0 {
		b.rate = rate.NewLimiter(rate.Limit(l.Rate), burst(l))
	}
	return b
}

const day = 24 * time.Hour

// take counts n IDs, or says why they cannot be had.
func (b *bucket) take(now time.Time, n int64) *LimitError {
	b.mu.Lock()
	defer b.mu.Unlock()
	today := now.Unix() / int64(day/time.Second)
	if today != b.day {
		b.day, b.used = today, 0
	}
	if b.limit.Quota > 0 && n > b.limit.Quota-b.used {
		err := &LimitError{What: fmt.Sprintf("%d IDs a day", b.limit.Quota)}
		if n <= b.limit.Quota {
			err.RetryAfter = time.Unix((today+1)*int64(day/time.Second), 0).Sub(now)
		}
		return err
	}
	if b.rate != nil {
		if n > int64(burst(b.limit)) {
			return &LimitError{What: fmt.Sprintf("%d IDs at once", burst(b.limit))}
		}
		r := b.rate.ReserveN(now, int(n))
		if wait := r.DelayFrom(now); wait > 0 {
			r.CancelAt(now)
			return &LimitError{What: fmt.Sprintf("%d IDs a second", b.limit.Rate), RetryAfter: wait}
		}
	}
	b.used += n
	return nil
}

// refund takes back that n IDs were counted.
func (b *bucket) refund(now time.Time, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate != nil {
		b.rate.ReserveN(now, -int(n)) // never more than the burst: take has checked it
	}
	if now.Unix()/int64(day/time.Second) == b.day {
		b.used = max(b.used-n, 0)
	}
}

// idle reports whether b holds nothing that a new bucket would not.
func (b *bucket) idle(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return (b.used == 0 || now.Unix()/int64(day/time.Second) != b.day) && (b.rate == nil || b.rate.TokensAt(now) >= float64(burst(b.limit)))
}

// maxBuckets bounds the known tokens, addresses, or tags. A forgotten one starts afresh.
const maxBuckets = 1 << 17

// buckets holds the latest used buckets, at most maxBuckets. It hashes keys, so that long ones take
// no memory. The zero value is ready for use.
type buckets struct {
	mu     sync.Mutex
	byKey  map[uint64]*list.Element // of entry
	order  list.List                // the one used last first
	shared map[Limit]*bucket        // nil, or of newcomers while all others are in use, which then are kept
}

type entry struct {
	key    uint64
	bucket *bucket
}

var seed = maphash.MakeSeed()

func hash(texts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, text := range texts {
		_, _ = h.WriteString(text) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// get returns the bucket of a key; a new one if its limit has changed. made, if it is not nil, becomes
// the bucket of a new key.
func (b *buckets) get(key uint64, limit Limit, now time.Time, made *bucket) *bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byKey == nil {
		b.byKey = make(map[uint64]*list.Element)
	}
	if found := b.find(key, limit); found != nil {
		return found
	}
	if b.order.Len() >= maxBuckets {
		oldest := b.order.Back()
		if b.shared != nil && !oldest.Value.(*entry).bucket.idle(now) {
			if b.shared[limit] == nil {
				b.shared[limit] = newBucket(limit)
			}
			return b.shared[limit]
		}
		delete(b.byKey, b.order.Remove(oldest).(*entry).key)
	}
	if made == nil || made.limit != limit {
		made = newBucket(limit)
	}
	b.byKey[key] = b.order.PushFront(&entry{key, made})
	return made
}

// find returns the bucket of a key, or nil; the caller holds b.mu.
func (b *buckets) find(key uint64, limit Limit) *bucket {
	e := b.byKey[key]
	if e == nil {
		return nil
	}
	b.order.MoveToFront(e)
	found := e.Value.(*entry)
	if found.bucket.limit != limit {
		found.bucket = newBucket(limit)
	}
	return found.bucket
}

func (b *buckets) has(key uint64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byKey[key] != nil
}

func (b *buckets) remove(key uint64) *bucket {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.byKey[key]
	if e == nil {
		return nil
	}
	delete(b.byKey, key)
	return b.order.Remove(e).(*entry).bucket
}

// A keyTable holds the buckets of keys. A key is a tag, a label of a scheme that accepts any, or
// a name that may be no tag. Each kind has its own table, so that a caller who makes up keys
// takes no room from tags.
type keyTable struct {
	mu      sync.Mutex
	tags    buckets
	labels  buckets
	unknown buckets // forgets the names not used for longest
}

// keyBucket returns the bucket of a key. The bucket of a name that turns out to be a tag keeps
// its count.
func (g *Gate) keyBucket(hash uint64, limit Limit, scheme, key string, now time.Time) *bucket {
	if scheme != issuer.Segment {
		return g.keys.labels.get(hash, limit, now, nil)
	}
	known := g.opts.HasTag == nil || g.opts.HasTag(key)
	g.keys.mu.Lock()
	defer g.keys.mu.Unlock()
	if known || g.keys.tags.has(hash) { // the count of a deleted tag stays
		return g.keys.tags.get(hash, limit, now, g.keys.unknown.remove(hash))
	}
	return g.keys.unknown.get(hash, limit, now, nil)
}

// charge counts n IDs under all matching limits of who and key, or not at all.
func (g *Gate) charge(c *Caller, who *grant, scheme, key string, n int64, now time.Time) error {
	due := g.due(c, who, scheme, key, now)
	for i, b := range due {
		if err := b.take(now, n); err != nil {
			for _, b := range due[:i] {
				b.refund(now, n)
			}
			return err
		}
	}
	return nil
}

// due returns what counts the IDs of who and key. The keys of one scheme do not count for those
// of another, but tickets are IDs of tags.
func (g *Gate) due(c *Caller, who *grant, scheme, key string, now time.Time) (due []*bucket) {
	if issuer.SchemeOf(scheme).Tags {
		scheme = issuer.Segment
	}
	switch {
	case who.limit == Limit{}:
	case who.name != "":
		due = append(due, g.tokens.get(hash(who.name), who.limit, now, nil))
	default:
		due = append(due, g.addresses.get(hash(network(c.addr)), who.limit, now, nil))
	}
	for _, l := range g.current().limits {
		if matches(l.pattern, key) {
			due = append(due, g.keyBucket(hash(l.pattern, scheme, key), l.limit, scheme, key, now))
		}
	}
	return due
}

// network returns the key of a client: its IPv4 address, or the /64 of its IPv6 address, which one
// client usually owns as a whole.
func network(addr netip.Addr) string {
	if addr.Is6() {
		if prefix, err := addr.Prefix(64); err == nil {
			return prefix.String()
		}
	}
	return addr.String()
}
