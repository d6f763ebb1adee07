package drivertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A Lossy is a store and a registry behind something that loses answers.
type Lossy struct {
	Store    segment.Store
	Registry worker.Registry
	Direct   segment.Store // the same store, without losses
	Tag      segment.Tag   // of the store, unused so far

	Lose   func()       // loses the answer of the next write, after its execution
	Writes func() int64 // how many were sent so far
}

// TestSentOnce checks that a write whose answer is lost is an error of unknown outcome, and
// is sent again neither by the driver nor by its client library.
func TestSentOnce(t *testing.T, l Lossy) {
	ctx, name, next := t.Context(), l.Tag.Name, l.Tag.MaxID
	once := func(what string, call func() error) {
		t.Helper()
		l.Lose()
		before := l.Writes()
		if err := call(); err == nil || errors.Is(err, worker.ErrConflict) {
			t.Errorf("%s: got error %v, want one that leaves the outcome open", what, err)
		}
		if n := l.Writes() - before; n != 1 {
			t.Errorf("%s was sent %d times", what, n)
		}
	}
	want := func(s segment.Store, n int64) segment.Grant {
		t.Helper()
		grant, err := s.Advance(ctx, name, n)
		if err != nil || grant.Range != (leaf.Range{Start: next, End: next + n}) {
			t.Fatalf("got %v, %v, want a range from %d", grant.Range, err, next)
		}
		next += n
		return grant
	}
	want(l.Store, 10) // it now knows the counter
	once("advance", func() error { _, err := l.Store.Advance(ctx, name, 10); return err })
	next += 10 // these are lost
	grant := want(l.Store, 20)
	next -= 10
	once("return", func() error { return l.Store.(segment.Returner).Return(ctx, name, grant, next) })
	want(l.Direct, 10)
	record := worker.Record{Worker: 7}
	for range 2 { // the first makes the record
		changed := record
		changed.Instance, changed.Term = worker.NewInstance(), record.Term+1
		once("swap", func() error { return attempt(ctx, l.Registry, record, changed) })
		if got, err := l.Registry.Load(ctx, 7); err != nil || !got.Equal(changed) {
			t.Errorf("after the swap: got %+v, %v, want %+v", got, err, changed)
		}
		record = changed
	}
}

// TestReads makes each kind of read, for a test that watches how they are made. It calls
// begin before each.
func TestReads(t *testing.T, s segment.Store, r worker.Registry, tag string, begin func()) {
	t.Helper()
	ctx := t.Context()
	for what, call := range map[string]func() error{
		"advance": func() error { _, err := s.Advance(ctx, tag, 10); return err },
		"swap":    func() error { return attempt(ctx, r, worker.Record{Worker: 1}, worker.Record{Worker: 1, Term: 1}) },
		"load":    func() error { _, err := r.Load(ctx, 2); return err },
		"list":    func() error { _, err := r.List(ctx); return err },
		"tags": func() (err error) {
			for _, err = range s.Tags(ctx) {
			}
			return err
		},
	} {
		begin()
		if err := call(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestMany checks that a [segment.Catalog] lists n tags, and a registry n records, each once.
func TestMany(t *testing.T, s segment.Store, r worker.Registry, n int) {
	t.Helper()
	ctx := t.Context()
	fill(t, n, func(i int64) error { return s.(segment.Catalog).Create(ctx, ManyTag(i)) })
	fill(t, n, func(i int64) error { return attempt(ctx, r, worker.Record{Worker: i}, ManyRecord(i)) })
	TestListed(t, s, r, n)
}

// ManyTag is the tag of number i, as [TestListed] expects it.
func ManyTag(i int64) segment.Tag { return segment.Tag{Name: fmt.Sprintf("tag-%d", i), Step: i + 1} }

// ManyRecord is the record of worker i, as [TestListed] expects it.
func ManyRecord(i int64) worker.Record { return worker.Record{Worker: i, Term: 1} }

// TestListed is [TestMany] where the tags and records are there, written in a faster way.
func TestListed(t *testing.T, s segment.Store, r worker.Registry, n int) {
	t.Helper()
	ctx := t.Context()
	var steps []int64
	for tag, err := range s.Tags(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, tag.Step)
	}
	slices.Sort(steps)
	records, err := r.List(ctx)
	if err != nil || len(steps) != n || len(records) != n {
		t.Fatalf("listed %d tags and %d records, %v, want %d", len(steps), len(records), err, n)
	}
	for i := range n {
		if steps[i] != int64(i)+1 || records[i].Worker != int64(i) {
			t.Fatalf("at %d: tag %d, worker %d", i, steps[i]-1, records[i].Worker)
		}
	}
}

// fill makes a call for each of n numbers, many at a time.
func fill(t *testing.T, n int, call func(int64) error) {
	t.Helper()
	const parallel = 256
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for first := range parallel {
		wg.Go(func() {
			for i := first; i < n && ctx.Err() == nil; i += parallel {
				if err := call(int64(i)); err != nil {
					t.Error(err)
					cancel()
				}
			}
		})
	}
	wg.Wait()
}
