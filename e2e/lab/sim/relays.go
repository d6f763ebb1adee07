package sim

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A relayWorld is a tagWorld with relays: their store is the stock of another server or relay. A
// rogue relay gives back ranges that it never borrowed.
type relayWorld struct{ *tagWorld }

func newRelayWorld(seed uint64, sabotage string) *relayWorld {
	w := &relayWorld{newTagWorld(seed, sabotage)}
	rng := w.random("relays")
	w.db.lossy = false // the guard is the work of the servers before the database
	w.lan = newDatabase(w.world)
	w.lan.weather.Store([]int64{0, 20, 100}[rng.IntN(3)])
	for i := range 2 {
		up := w.machines[rng.IntN(len(w.machines))]
		w.machines = append(w.machines, &machine{w: w.world, name: fmt.Sprint("relay", i), upstream: up})
	}
	return w
}

// run carries out the schedule.
func (w *relayWorld) run() {
	for i := range 2 {
		w.rogue(fmt.Sprint("rogue", i), w.machines[w.rng.IntN(len(w.machines))])
	}
	w.tagWorld.run()
}

// rogue has a machine that no client asks, and that gives back anything.
func (w *relayWorld) rogue(name string, upstream *machine) {
	m := &machine{w: w.world, name: name, upstream: upstream}
	p, rng := m.launch(), w.random(name)
	store := newRelayStore(w.tagWorld, p)
	w.clients.Go(func() {
		for w.sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond)))) {
			w.giveBackAnything(store, w.tags[rng.IntN(len(w.tags))].Name, rng)
		}
	})
}

func (w *relayWorld) giveBackAnything(store *relayStore, tag string, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	last, err := store.Advance(ctx, tag, 1+rng.Int64N(20))
	if err != nil {
		return
	}
	start := last.Range.Start - rng.Int64N(3)*rng.Int64N(50)
	if rng.IntN(3) == 0 { // what others were lent since
		if last.Range.End = store.next(tag); last.Range.End == 0 {
			return
		}
		start = last.Range.End - 1 - rng.Int64N(30)
	}
	for range 1 + rng.IntN(2) {
		_ = store.Return(ctx, tag, last, max(0, start))
	}
}

// A relayStore is the store that a server lends to a process, as package leafconn makes it.
type relayStore struct {
	w    *tagWorld
	up   *machine
	wire *port

	mu     sync.Mutex
	latest map[string]string // the version of the last grant, by tag
}

func newRelayStore(w *tagWorld, p *process) *relayStore {
	return &relayStore{w: w, up: p.upstream, wire: &port{p, w.lan}, latest: map[string]string{}}
}

// ask makes a call of the upstream, which finishes it even when the caller leaves.
func (r *relayStore) ask(ctx context.Context, do func(context.Context, *segment.Set) error) error {
	return r.wire.call(ctx, true, func() error {
		done := make(chan error, 1)
		r.w.background.Go(func() { done <- r.serve(context.WithoutCancel(ctx), do) })
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func (r *relayStore) serve(ctx context.Context, do func(context.Context, *segment.Set) error) error {
	p := r.up.proc.Load()
	if p == nil {
		return errDead
	}
	if err := p.await(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := do(ctx, p.serve.(*tagServer).set)
	if dead := p.await(); dead != nil { // the answer never leaves
		return dead
	}
	return err
}

// Advance takes a range of up to n IDs.
func (r *relayStore) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	r.mu.Lock()
	before := r.latest[tag]
	r.mu.Unlock()
	got := make(chan segment.Grant, 1)
	err := r.ask(ctx, func(ctx context.Context, set *segment.Set) error {
		grant, err := set.Server().Advance(ctx, tag, n, before)
		got <- grant
		return err
	})
	if err != nil {
		return segment.Grant{}, err
	}
	grant := <-got
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest[tag] = grant.Version
	return segment.Grant{Range: grant.Range, Step: grant.Step, Source: r.up.name, Version: grant.Version, Guarded: true}, nil
}

// Return gives the unused end of a grant back.
func (r *relayStore) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	end := segment.Grant{Range: leaf.Range{Start: start, End: last.Range.End}, Version: last.Version}
	return r.ask(ctx, func(ctx context.Context, set *segment.Set) error { return set.Server().Return(ctx, tag, end, start) })
}

// Tags lists the upstream's tags.
func (r *relayStore) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		if err := r.ask(ctx, func(context.Context, *segment.Set) error { return nil }); err != nil {
			yield(segment.Tag{}, err)
			return
		}
		for _, tag := range r.w.tags {
			if !yield(tag, nil) {
				return
			}
		}
	}
}

// next returns the upstream's next ID, 0 if its stock is empty.
func (r *relayStore) next(tag string) int64 {
	p := r.up.proc.Load()
	if p == nil {
		return 0
	}
	for _, st := range p.serve.(*tagServer).set.Stats() {
		for _, s := range st.Segments {
			if st.Tag == tag && s.Next < s.Range.End {
				return s.Next
			}
		}
	}
	return 0
}
