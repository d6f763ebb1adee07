package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// A fakeRegistry keeps the texts of records. Its clients are [ticker]s.
type fakeRegistry struct {
	mu    sync.Mutex
	texts map[int64]string
	times map[int64]int // how often a cell was written: its version
	wrote chan struct{} // closed at the next write
}

func newFakeRegistry() *fakeRegistry {
	return &fakeRegistry{texts: make(map[int64]string), times: make(map[int64]int), wrote: make(chan struct{})}
}

// set overwrites a cell.
func (s *fakeRegistry) set(id int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(id, text)
}

func (s *fakeRegistry) write(id int64, text string) {
	s.texts[id] = text
	s.times[id]++
	close(s.wrote)
	s.wrote = make(chan struct{})
}

// force writes a record over any content.
func (s *fakeRegistry) force(r worker.Record) { s.set(r.Worker, text(r)) }

func text(r worker.Record) string {
	text, _ := r.MarshalText()
	return string(text)
}

func (s *fakeRegistry) read(id int64) (r worker.Record, err error) {
	r.Worker = id
	if held, ok := s.texts[id]; ok {
		r.Version = strconv.Itoa(s.times[id])
		if err = r.UnmarshalText([]byte(held)); err != nil {
			err = fmt.Errorf("worker %d: %w", id, err)
		}
	}
	return r, err
}

// peek is for callers without the lock; in doubt it returns the zero record.
func (s *fakeRegistry) peek(id int64) worker.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.read(id)
	if err != nil {
		return never(id)
	}
	return r
}

func (s *fakeRegistry) Load(ctx context.Context, id int64) (worker.Record, error) {
	if id < 0 {
		return worker.Record{}, leaf.ErrInvalid
	}
	if err := ctx.Err(); err != nil {
		return worker.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(id)
}

func (s *fakeRegistry) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	return s.swapIf(ctx, old, new, func(held worker.Record) bool {
		return old.Version != "" && old.Version == held.Version || old.Version == "" && held.Equal(old)
	})
}

// swapIf swaps if matches accepts the content of the cell as old.
func (s *fakeRegistry) swapIf(ctx context.Context, old, new worker.Record, matches func(held worker.Record) bool) (worker.Record, error) {
	if old.Worker != new.Worker || new.Worker < 0 || new.IsZero() {
		return worker.Record{}, leaf.ErrInvalid
	}
	if err := ctx.Err(); err != nil {
		return worker.Record{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	held, err := s.read(new.Worker)
	if err != nil {
		return worker.Record{}, err
	}
	if !matches(held) {
		return worker.Record{}, worker.ErrConflict
	}
	s.write(new.Worker, text(new))
	return s.read(new.Worker)
}

func (s *fakeRegistry) List(ctx context.Context) ([]worker.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []worker.Record
	for _, id := range slices.Sorted(maps.Keys(s.texts)) {
		r, err := s.read(id)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (s *fakeRegistry) Clock(ctx context.Context) (time.Time, error) { return time.Now(), ctx.Err() }

func (s *fakeRegistry) Watch(ctx context.Context, _ int64) (<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wrote, ctx.Err()
}

func (s *fakeRegistry) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{Lossy: true, Incarnation: "first"}, ctx.Err()
}

func (s *fakeRegistry) Assign(ctx context.Context, max int64) (int64, error) { return max, ctx.Err() }

// client is one client of a fakeRegistry with some methods replaced.
type client struct {
	*fakeRegistry
	load   func(ctx context.Context, id int64) (worker.Record, error)
	swap   swapFunc
	list   func(ctx context.Context) ([]worker.Record, error)
	clock  func(ctx context.Context) (time.Time, error)
	watch  func(ctx context.Context, id int64) (<-chan struct{}, error)
	epoch  func(ctx context.Context) (worker.ServerEpoch, error)
	assign func(ctx context.Context, max int64) (int64, error)
	closed bool
}

func (c *client) Load(ctx context.Context, id int64) (worker.Record, error) {
	if c.closed {
		return worker.Record{}, leaf.ErrClosed
	}
	if c.load != nil {
		return c.load(ctx, id)
	}
	return c.fakeRegistry.Load(ctx, id)
}

func (c *client) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	if c.closed {
		return worker.Record{}, leaf.ErrClosed
	}
	if c.swap != nil {
		return c.swap(ctx, old, new)
	}
	return c.fakeRegistry.Swap(ctx, old, new)
}

func (c *client) List(ctx context.Context) ([]worker.Record, error) {
	if c.closed {
		return nil, leaf.ErrClosed
	}
	if c.list != nil {
		return c.list(ctx)
	}
	return c.fakeRegistry.List(ctx)
}

func (c *client) Clock(ctx context.Context) (time.Time, error) {
	if c.closed {
		return time.Time{}, leaf.ErrClosed
	}
	if c.clock != nil {
		return c.clock(ctx)
	}
	return c.fakeRegistry.Clock(ctx)
}

func (c *client) Watch(ctx context.Context, id int64) (<-chan struct{}, error) {
	if c.watch != nil {
		return c.watch(ctx, id)
	}
	return c.fakeRegistry.Watch(ctx, id)
}

func (c *client) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	if c.epoch != nil {
		return c.epoch(ctx)
	}
	return c.fakeRegistry.ServerEpoch(ctx)
}

func (c *client) Assign(ctx context.Context, max int64) (int64, error) {
	if c.assign != nil {
		return c.assign(ctx, max)
	}
	return c.fakeRegistry.Assign(ctx, max)
}

func (c *client) Close() error {
	c.closed = true
	return nil
}

// shelfBackend is a fresh state whose clients open makes.
func shelfBackend(open func(*fakeRegistry) worker.Registry) RegistryBackend {
	s := newFakeRegistry()
	return RegistryBackend{
		Open:    func(testing.TB) worker.Registry { return open(s) },
		Corrupt: func(_ testing.TB, id int64, text string) { s.set(id, text) },
	}
}

// TestRegistryRulesPassGoodRegistry applies the rules to a correct registry, with and without its
// optional methods.
func TestRegistryRulesPassGoodRegistry(t *testing.T) {
	for _, r := range registryRules() {
		full := shelfBackend(func(s *fakeRegistry) worker.Registry { return &client{fakeRegistry: s} })
		if err := r.run(t, full); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		plain := shelfBackend(func(s *fakeRegistry) worker.Registry { return struct{ worker.Registry }{s} })
		plain.Corrupt = nil
		if err := r.run(t, plain); err != nil {
			t.Errorf("%s, plain registry: %v", r.name, err)
		}
	}
}

// TestRegistryRulesCatchBrokenRegistries checks that the rules about its fault catch each broken
// registry, and that each rule catches some registry.
func TestRegistryRulesCatchBrokenRegistries(t *testing.T) {
	idle := make(map[string]bool)
	for _, r := range registryRules() {
		idle[r.name] = true
	}
	for _, m := range registryMutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range registryRules() {
				if !slices.Contains(m.caughtBy, r.name) {
					continue
				}
				if err := r.run(t, shelfBackend(m.open)); err == nil {
					t.Errorf("rule %q has nothing to say", r.name)
				} else {
					t.Logf("%s: %v", r.name, err)
				}
			}
		})
		for _, name := range m.caughtBy {
			if !slices.ContainsFunc(registryRules(), func(r registryRule) bool { return r.name == name }) {
				t.Errorf("mutant %q names the rule %q, which is none", m.name, name)
			}
			delete(idle, name)
		}
	}
	for name := range idle {
		t.Errorf("no broken registry shows that rule %q can fail", name)
	}
}

// A registryMutant is a way to be broken, and the rules that must notice.
type registryMutant struct {
	name     string
	open     func(*fakeRegistry) worker.Registry
	caughtBy []string
}

var errOther = errors.New("out of order")
