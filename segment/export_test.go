package segment

import (
	"context"
	"testing"
	"time"
)

// AddOption adds an option for the time of a test.
func AddOption(t *testing.T, o Option) {
	before := optionTable
	optionTable = append(KnownOptions(), o)
	t.Cleanup(func() { optionTable = before })
}

// LimitListed bounds how many tags of a listing a set keeps by name and as hashes, for the time of a
// test.
func LimitListed(t *testing.T, names, hashes int) {
	listed, hashed := maxListed, maxHashed
	maxListed, maxHashed = names, hashes
	t.Cleanup(func() { maxListed, maxHashed = listed, hashed })
}

// Kept returns how many tags the set keeps of the latest listing by name and as hashes, and whether
// these are all.
func (s *Set) Kept() (names, hashes int, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.listed), len(s.hashed), s.whole
}

// Collide has the latest listing have a tag of another name with the hash of this one.
func (s *Set) Collide(tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hashed = []uint64{s.hash(tag)}
}

// Advance lends IDs, as a server's set does.
func (b *Buffer) Advance(ctx context.Context, n int64, before string) (Grant, error) {
	return b.advance(ctx, n, before)
}

// Await waits for the store like a caller without stock.
func (b *Buffer) Await(ctx context.Context) error {
	_, err := b.await(ctx, b.current.Load(), 1, false, time.NewTimer(b.opts.Wait))
	return err
}

// Return ends a loan.
func (b *Buffer) Return(ctx context.Context, last Grant, start int64) error {
	return b.takeBack(ctx, last, start)
}

// DropBelow drops the IDs below a limit.
func (b *Buffer) DropBelow(below int64) int64 { return b.dropBelow(below) }
