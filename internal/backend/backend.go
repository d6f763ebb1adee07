// Package backend has the type behind a store or registry URL. Package drivers makes it, and
// package server uses it without knowing a driver.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// ErrNothingToCreate is wrapped by an Init where nothing has to be created.
var ErrNothingToCreate = errors.New("there is nothing to create")

// A DB is the driver's side of a [Backend]. It is a [Tags], a [Workers] or both, over one pool of
// connections.
type DB interface{ Close() error }

// A Tags is a [DB] with a store of tags.
type Tags interface {
	Store() (segment.Store, error)
	Init(context.Context, []segment.Tag) error
	Exists(context.Context) (bool, error)
}

// A Workers is a [DB] with a registry of worker IDs.
type Workers interface {
	Registry(*RegistryOptions) (worker.Registry, error)
	InitRegistry(context.Context) error
	RegistryExists(context.Context) (bool, error)
}

// A Backend is the thing behind a URL.
type Backend struct {
	Name   string // the URL, without its password
	Traits Traits

	// Key identifies the state behind the URL, without credentials and parameters. URLs of one state
	// have one key, as far as the URLs tell.
	Key string

	DB            DB
	Hosts         []Host // those of a URL with several, where each can be asked by itself
	Tags, Workers Part   // of DB, after Complete

	opened []io.Closer
}

// Traits are the properties of a backend. The zero value is that of a database server.
type Traits struct {
	Local      bool // no other machine reaches it
	Ticket     bool // the tags' IDs come from ticket servers
	Assigned   bool // the registry says which worker ID to use
	Disposable bool // each start of a process uses up a worker ID, so no [worker.StateFile] is needed

	// Settings from the URL and from the kind of registry: see [worker.Options].
	StoreID    string // see [segment.Options]
	Reclaim    bool
	Settle     bool
	ClaimDelay time.Duration // 0: the default; negative: no delay
	MaxAhead   time.Duration // of the clock, at most; 0: no limit
}

// RegistryOptions are the optional settings of [Backend.Registry]; nil means all defaults.
type RegistryOptions struct {
	// Lock opens and locks a file of the data directory. static: needs it.
	Lock func(name string) (*os.File, error)

	// Hold is how long static: holds back a worker ID without a record.
	Hold time.Duration

	// Port tells this server from others at its address in Java Leaf's tree, unless the URL has
	// one; 0: the URL must.
	Port int

	// Memory remembers this machine's worker IDs of WORKER_NODE over restarts; nil: no memory.
	Memory segment.Memory

	// Now is this machine's clock for Java Leaf's tree; default [time.Now].
	Now func() time.Time

	// Observe: the caller claims no worker ID, so the URL need not name this server.
	Observe bool
}

// Store returns the store of tags, which ends with the backend.
func (b *Backend) Store() (segment.Store, error) {
	return open(b, &b.Tags, func() (segment.Store, error) { return b.DB.(Tags).Store() })
}

// Registry returns the registry of worker IDs, which ends with the backend. It locks the
// file of static:.
func (b *Backend) Registry(o *RegistryOptions) (worker.Registry, error) {
	if o == nil {
		o = &RegistryOptions{}
	}
	return open(b, &b.Workers, func() (worker.Registry, error) { return b.DB.(Workers).Registry(o) })
}

// open opens one part of a backend, which closes it.
func open[T any](b *Backend, p *Part, open func() (T, error)) (T, error) {
	var none T
	if p.Unfit != nil {
		return none, p.Unfit
	}
	opened, err := open()
	if err != nil {
		return none, p.wrap(err)
	}
	if c, ok := any(opened).(io.Closer); ok {
		b.opened = append(b.opened, c)
	}
	return opened, nil
}

// Close closes the opened parts, and the connections.
func (b *Backend) Close() error {
	var errs []error
	for _, c := range slices.Backward(b.opened) {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, b.DB.Close())...)
}

// Route returns the names of the servers that the IDs come through; nil: it is not a server.
func (b *Backend) Route() func() []string {
	if r, ok := b.DB.(interface{ Route() []string }); ok {
		return r.Route
	}
	return nil
}

// Resize are the arguments of [Backend.Resize].
type Resize struct {
	Retired string   // the URL of the servers that leave the set; may be empty
	Lost    []string // names of servers whose data is gone for good
	Jump    int64    // more than one of these can have been ahead of all others; 0: the default
}

// Resize changes the number of ticket servers to that of the URL.
func (b *Backend) Resize(ctx context.Context, r Resize) error {
	db, ok := b.DB.(interface {
		Resize(context.Context, Resize) error
	})
	if !ok {
		return fmt.Errorf("resize store %s: %w: only ticket servers have a number", b.Name, leaf.ErrInvalid)
	}
	return b.Tags.wrap(db.Resize(ctx, r))
}

// Complete sets the name, which is the URL without its password, and the two parts.
func (b *Backend) Complete(name string) *Backend {
	b.Name = name
	b.Tags = Part{name: "store " + name, check: b.checkStore}
	if db, ok := b.DB.(Tags); ok {
		b.Tags.init, b.Tags.exists = db.Init, db.Exists
	}
	b.Workers = Part{name: "worker registry " + name, check: b.checkRegistry}
	if db, ok := b.DB.(Workers); ok {
		b.Workers.init = func(ctx context.Context, _ []segment.Tag) error { return db.InitRegistry(ctx) }
		b.Workers.exists = db.RegistryExists
	}
	return b
}

func (b *Backend) checkStore(ctx context.Context) error {
	store, err := b.Store()
	if err != nil {
		return err
	}
	if c, ok := store.(interface{ Check(context.Context) error }); ok {
		return b.Tags.wrap(c.Check(ctx))
	}
	for _, err = range store.Tags(ctx) {
		break
	}
	return b.Tags.wrap(err)
}

func (b *Backend) checkRegistry(ctx context.Context) error {
	registry, err := b.Registry(&RegistryOptions{Observe: true})
	if err != nil {
		return err
	}
	_, err = registry.List(ctx)
	if d, ok := registry.(worker.Disposable); ok && err == nil {
		_, err = d.Starts(ctx, 1)
	}
	return b.Workers.wrap(err)
}

// A Part is one of the two things that a backend may keep: tags, or worker IDs.
type Part struct {
	Unfit error // reports why the backend does not keep it; nil: it does

	name   string // for people
	init   func(context.Context, []segment.Tag) error
	exists func(context.Context) (bool, error)
	check  func(context.Context) error
}

// Init creates the durable state, a store with these tags in it. If the state exists, Init leaves it
// as it is, and the error wraps [io/fs.ErrExist]. It wraps [ErrNothingToCreate] where nothing has to
// be created.
func (p *Part) Init(ctx context.Context, tags ...segment.Tag) error {
	if p.Unfit != nil {
		return p.Unfit
	}
	return p.wrap(p.init(ctx, tags))
}

// Exists reports whether [Part.Init] has created the state, or need not.
func (p *Part) Exists(ctx context.Context) (bool, error) {
	if p.Unfit != nil {
		return false, p.Unfit
	}
	ok, err := p.exists(ctx)
	return ok, p.wrap(err)
}

// Check reports why the state cannot be used as it is. It changes nothing.
func (p *Part) Check(ctx context.Context) error { return p.check(ctx) }

func (p *Part) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.name, err)
}
