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

// LimitHashed bounds how many tags of a listing a set keeps as hashes, for the time of a test.
func LimitHashed(t *testing.T, n int) {
	before := maxHashed
	maxHashed = n
	t.Cleanup(func() { maxHashed = before })
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

// Await waits for the store as a caller does that has found no stock.
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
