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

// ErrNothingToCreate is wrapped where a registry needs no [Part.Init].
var ErrNothingToCreate = errors.New("there is nothing to create")

// A Backend is the thing behind a URL: a store of tags, a registry of worker IDs, or both over one
// pool of connections.
type Backend struct {
	Name   string // the URL, without its password
	Traits Traits

	// Key identifies the state behind the URL, without credentials and parameters: two
	// URLs of one state have one key, as far as can be told without asking the server.
	Key string

	Tags, Workers Part

	// What its driver does.
	OpenStore    func() (segment.Store, error)                  // nil: it keeps no tags
	OpenRegistry func(RegistryOptions) (worker.Registry, error) // nil: it keeps no worker IDs
	ResizeTo     func(context.Context, Resize) error            // nil: it has no number of servers
	OnClose      func() error                                   // nil: nothing is open
	Hosts        []Host                                         // those of a URL with several, where they can be asked one by one
	Route        func() []string                                // the servers that its IDs come through; nil: it is not a server

	opened []io.Closer
}

// Traits say what holds of a backend. The zero value is that of a database server.
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
	MaxAhead   time.Duration // of the clock, at most; 0: not bounded
}

// Store returns the store of tags, which ends with the backend.
func (b *Backend) Store() (segment.Store, error) {
	return open(b, &b.Tags, b.OpenStore)
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

	// Memory remembers over restarts which worker IDs of WORKER_NODE this machine was
	// dealt; nil: nothing does.
	Memory segment.Memory

	// Now is this machine's clock; default [time.Now]. Only Java Leaf's tree takes it.
	Now func() time.Time

	// Observe says that no worker ID is going to be claimed, so that the URL need not
	// say who would.
	Observe bool
}

// Registry returns the registry of worker IDs, which ends with the backend. It locks the
// file of static:.
func (b *Backend) Registry(o *RegistryOptions) (worker.Registry, error) {
	if o == nil {
		o = &RegistryOptions{}
	}
	return open(b, &b.Workers, func() (worker.Registry, error) { return b.OpenRegistry(*o) })
}

// open opens one part of a backend, and has it closed with that.
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
	if b.OnClose != nil {
		errs = append(errs, b.OnClose())
	}
	return errors.Join(errs...)
}

// Resize says how ticket servers become another number.
type Resize struct {
	Retired string   // the URL of those that leave the set; may be empty
	Lost    []string // names of those whose data is gone for good
	Jump    int64    // more than one of these can have been ahead of all others; 0: the default
}

// Resize has ticket servers, which exist, become as many as the URL names.
func (b *Backend) Resize(ctx context.Context, r Resize) error {
	if b.ResizeTo == nil {
		return fmt.Errorf("resize store %s: %w: only ticket servers have a number", b.Name, leaf.ErrInvalid)
	}
	return b.Tags.wrap(b.ResizeTo(ctx, r))
}

// SetName sets the URL, without its password.
func (b *Backend) SetName(name string) {
	b.Name = name
	b.Tags.name, b.Tags.check = "store "+name, b.checkStore
	b.Workers.name, b.Workers.check = "worker registry "+name, b.checkRegistry
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
	Unfit error // says why the backend does not keep it; nil: it does

	// What its driver does.
	Create func(context.Context, []segment.Tag) error // nil: nothing to create
	Made   func(context.Context) (bool, error)

	name  string // for people
	check func(context.Context) error
}

// Init creates the durable state, a store with these tags in it. It fails, wrapping
// [io/fs.ErrExist], if that exists, and leaves it as it is; and, wrapping
// [ErrNothingToCreate], where nothing has to be created.
func (p *Part) Init(ctx context.Context, tags ...segment.Tag) error {
	switch {
	case p.Unfit != nil:
		return p.Unfit
	case p.Create == nil:
		return fmt.Errorf("create %s: %w", p.name, ErrNothingToCreate)
	}
	return p.wrap(p.Create(ctx, tags))
}

// Exists reports whether [Part.Init] has created the state, or need not.
func (p *Part) Exists(ctx context.Context) (bool, error) {
	if p.Unfit != nil || p.Create == nil {
		return p.Unfit == nil, p.Unfit
	}
	ok, err := p.Made(ctx)
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
