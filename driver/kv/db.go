package kv

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Keys of the format markers.
var (
	tagFormat    = Key{Format, string(Tags)}
	workerFormat = Key{Format, string(Workers)}
)

// A DB is the cells of one backend. It may hold a [Store], a [Registry] or both. Nothing
// is created by opening it: see [DB.Init] and [DB.InitRegistry].
type DB struct {
	backend Backend
	name    string // for people
	checked atomic.Bool

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	store    *Store
	registry *Registry
}

// Options are the optional settings of a [DB]; nil means all defaults.
type Options struct {
	// Create creates a missing registry at its first use. It is for the registries of another
	// program, which creates them in that way.
	Create bool
}

// New returns the DB in a backend, which it closes. It makes no call.
func New(b Backend, opts *Options) *DB {
	if opts == nil {
		opts = &Options{}
	}
	d := &DB{backend: b, name: "the store"}
	if named, ok := b.(fmt.Stringer); ok {
		d.name = named.String()
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.store = &Store{db: d, counters: make(map[Key]*counter)}
	d.store.marker = marker{db: d, key: tagFormat, missing: segment.ErrNotCreated, newer: leaf.ErrUnsupported}
	d.registry = &Registry{db: d, marker: marker{db: d, key: workerFormat, missing: worker.ErrNotCreated, newer: worker.ErrNewer, create: opts.Create}}
	return d
}

// Store returns the store of tags. Its calls fail, wrapping [segment.ErrNotCreated],
// until it was created.
func (d *DB) Store() *Store { return d.store }

// Registry returns the registry of workers. Its calls fail, wrapping
// [worker.ErrNotCreated], until it was created.
func (d *DB) Registry() *Registry { return d.registry }

// Identities returns the identities of the store and the registry, as far as they have one, by the
// words for people.
func (d *DB) Identities(ctx context.Context) (map[string]string, error) {
	known := make(map[string]string)
	for part, key := range map[string]Key{"store": tagFormat, "registry of worker IDs": workerFormat} {
		cell, err := d.backend.Get(ctx, key)
		if err != nil {
			return nil, wrap(err, "read the identity of the %s", part)
		}
		var found markerText
		if err := json.Unmarshal([]byte(cell.Value), &found); err == nil && found.Store != "" {
			known[part] = found.Store
		}
	}
	return known, nil
}

// Exists reports whether any release has created the store.
func (s *Store) Exists(ctx context.Context) (bool, error) { return s.marker.exists(ctx) }

// Exists reports whether any release has created the registry.
func (r *Registry) Exists(ctx context.Context) (bool, error) { return r.marker.exists(ctx) }

// Init creates the store, with the given tags in it. If the store exists, the error wraps
// [fs.ErrExist]. Of several concurrent calls one creates it. The caller may repeat an interrupted
// Init.
func (d *DB) Init(ctx context.Context, tags []segment.Tag) error {
	err := d.do(ctx, func() error {
		if err := segment.CheckTags(tags); err != nil {
			return err
		}
		if err := d.prepare(ctx); err != nil {
			return err
		}
		if err := d.store.marker.absent(ctx); err != nil {
			return err
		}
		for _, tag := range tags {
			if err := d.store.create(ctx, tag); err != nil && !errors.Is(err, leaf.ErrTagExists) {
				return fmt.Errorf("tag %q: %w", tag.Name, err)
			}
		}
		return d.store.marker.write(ctx)
	})
	return wrap(err, "create the store")
}

// InitRegistry creates the registry. If it exists, the error wraps [fs.ErrExist].
func (d *DB) InitRegistry(ctx context.Context) error {
	err := d.do(ctx, func() error {
		if err := d.prepare(ctx); err != nil {
			return err
		}
		if err := d.registry.marker.absent(ctx); err != nil { // it also finds a member that answers
			return err
		}
		return d.registry.marker.write(ctx)
	})
	return wrap(err, "create the registry")
}

func (d *DB) prepare(ctx context.Context) error {
	if p, ok := d.backend.(Preparer); ok {
		return p.Prepare(ctx)
	}
	return nil
}

// Close ends the connections. Calls that wait fail with an error that wraps
// [leaf.ErrClosed], as later calls do.
func (d *DB) Close() error {
	if d.ctx.Err() != nil {
		return nil
	}
	d.store.mu.Lock()
	d.cancel()
	d.store.mu.Unlock()
	err := d.backend.Close()
	d.work.Wait()
	return err
}

// do makes a call, unless the DB is closed or its store cannot be trusted.
func (d *DB) do(ctx context.Context, call func() error) error {
	if d.ctx.Err() != nil {
		return leaf.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := d.check(ctx)
	if err == nil {
		err = call()
	}
	if err != nil && d.ctx.Err() != nil && !errors.Is(err, leaf.ErrClosed) {
		return fmt.Errorf("%w: %w", leaf.ErrClosed, err)
	}
	return err
}

// check asks the backend once whether its store can be trusted.
func (d *DB) check(ctx context.Context) error {
	c, ok := d.backend.(Checker)
	if !ok || d.checked.Load() {
		return nil
	}
	if err := c.Check(ctx); err != nil {
		return err
	}
	d.checked.Store(true)
	return nil
}

// keyName returns the name of a key for people.
func (d *DB) keyName(key Key) string {
	if n, ok := d.backend.(Namer); ok {
		return n.KeyName(key)
	}
	return "key " + key.String()
}

func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// A marker is the cell that says that a store or a registry was created. A mistyped URL
// must never begin a counter again.
type marker struct {
	db      *DB
	key     Key
	missing error // the error without a marker
	newer   error // wrapped if a newer release wrote it
	create  bool  // write it if it is missing
	seen    atomic.Bool
}

// markerText is the content of a marker's cell. Older releases wrote no identity.
type markerText struct {
	Version int    `json:"v"`
	Store   string `json:"store,omitempty"`
}

// format is the version of the cells that this release writes.
const format = 1

// check reports why the cells behind the marker cannot be used. Once it was there it is
// not asked for again.
func (m *marker) check(ctx context.Context) error {
	if m.seen.Load() {
		return nil
	}
	return m.recheck(ctx)
}

// recheck is check, asking in any case.
func (m *marker) recheck(ctx context.Context) error {
	cell, err := m.db.backend.Get(ctx, m.key)
	if err != nil {
		return err
	}
	if cell.Version == "" && m.create {
		err := m.write(ctx)
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
		return err
	}
	if cell.Version == "" {
		return fmt.Errorf("%w: there is no %s", m.missing, m.db.keyName(m.key))
	}
	found, err := m.parse(cell)
	if err == nil && found.Store == "" {
		_, _ = m.identity(ctx) // a client that may only read goes without
	}
	return err
}

// parse parses a marker's cell, and refuses the cell of a newer release.
func (m *marker) parse(cell Cell) (found markerText, err error) {
	err = json.Unmarshal([]byte(cell.Value), &found)
	switch {
	case err != nil || found.Version < 1:
		return markerText{}, fmt.Errorf("%w: the %s holds %.50q, which is not a format: choose another prefix", leaf.ErrUnsupported, m.db.keyName(m.key), cell.Value)
	case found.Version > format:
		return markerText{}, fmt.Errorf("%w: the %s says format %d", m.newer, m.db.keyName(m.key), found.Version)
	}
	m.seen.Store(true)
	return found, nil
}

// identity returns the identity of the store as the marker now has it. It gives one to a
// store that an older release created.
func (m *marker) identity(ctx context.Context) (string, error) {
	for {
		cell, err := m.db.backend.Get(ctx, m.key)
		if err != nil {
			return "", err
		}
		if cell.Version == "" {
			return "", fmt.Errorf("%w: there is no %s", m.missing, m.db.keyName(m.key))
		}
		found, err := m.parse(cell)
		if err != nil || found.Store != "" {
			return found.Store, err
		}
		if _, err := m.db.backend.Swap(ctx, cell, m.text()); err != nil && !errors.Is(err, ErrConflict) {
			return "", err
		}
	}
}

// text returns the content of a new marker.
func (m *marker) text() string {
	return fmt.Sprintf(`{"v":%d,"store":%q}`, format, rand.Text())
}

func (m *marker) exists(ctx context.Context) (bool, error) {
	cell, err := m.db.backend.Get(ctx, m.key)
	return cell.Version != "", err
}

// absent reports an error that wraps [fs.ErrExist] if the marker is there.
func (m *marker) absent(ctx context.Context) error {
	exists, err := m.exists(ctx)
	if exists {
		err = existsError{m.db.keyName(m.key)}
	}
	return err
}

func (m *marker) write(ctx context.Context) error {
	_, err := m.db.backend.Swap(ctx, Cell{Key: m.key}, m.text())
	if errors.Is(err, ErrConflict) {
		return existsError{m.db.keyName(m.key)}
	}
	return err
}

// An existsError is [fs.ErrExist], without its words about files.
type existsError struct{ key string }

func (e existsError) Error() string        { return "there is a " + e.key + " already" }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }
