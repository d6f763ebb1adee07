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
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// ErrNothingToCreate is wrapped by an Init where nothing has to be created.
var ErrNothingToCreate = errors.New("there is nothing to create")

// A Backend is the thing behind a URL.
type Backend struct {
	Name   string // the URL, without its password
	Traits Traits

	// Key identifies the state behind the URL, without credentials and parameters. URLs of one state
	// have one key, as far as the URLs tell.
	Key string

	DB             io.Closer       // the driver's side, with any of the interfaces below
	TagStore       segment.Store   // nil: it keeps no tags
	WorkerRegistry worker.Registry // nil: it keeps no worker IDs, or DB opens the registry

	Hosts         []Host // those of a URL with several, where each can be asked by itself
	Tags, Workers Part   // after Complete

	opened []io.Closer
}

// The interfaces of a driver's side.
type (
	starter interface { // of a store in this process
		Start() error                // before the first use
		Ready(context.Context) error // before Init
	}
	registryOpener interface { // of a registry that depends on the process
		OpenRegistry(*RegistryOptions) (worker.Registry, error)
	}
	registryCreator interface{ InitRegistry(context.Context) error }
	storeCreator    interface {
		Init(context.Context, []segment.Tag) error
	}
	exister interface { // of the store that a creator makes
		Exists(context.Context) (bool, error)
	}
	resizer interface {
		Resize(context.Context, Resize) error
	}
	routed        interface{ Route() []string }
	clusterMember interface {
		Stats() health.Cluster
		Failure() (restart bool, err error)
	}
)

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
	if err := b.start(&b.Tags); err != nil {
		return nil, err
	}
	return b.TagStore, nil
}

// Registry returns the registry of worker IDs, which ends with the backend. It locks the
// file of static:.
func (b *Backend) Registry(o *RegistryOptions) (worker.Registry, error) {
	if err := b.start(&b.Workers); err != nil {
		return nil, err
	}
	db, ok := b.DB.(registryOpener)
	if !ok {
		return b.WorkerRegistry, nil
	}
	if o == nil {
		o = &RegistryOptions{}
	}
	registry, err := db.OpenRegistry(o)
	if err != nil {
		return nil, b.Workers.wrap(err)
	}
	if c, ok := registry.(io.Closer); ok {
		b.opened = append(b.opened, c)
	}
	return registry, nil
}

func (b *Backend) start(p *Part) error {
	if db, ok := b.DB.(starter); ok && p.Unfit == nil {
		return p.wrap(db.Start())
	}
	return p.Unfit
}

// Close closes the opened registries, and the connections.
func (b *Backend) Close() error {
	var errs []error
	for _, c := range slices.Backward(b.opened) {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, b.DB.Close())...)
}

// Route returns the names of the servers that the IDs come through; nil: it is not a server.
func (b *Backend) Route() func() []string {
	if r, ok := b.DB.(routed); ok {
		return r.Route
	}
	return nil
}

// ClusterStats returns a function that reads the figures of this process's member of a cluster; nil
// without one.
func (b *Backend) ClusterStats() func() health.Cluster {
	if m, ok := b.DB.(clusterMember); ok {
		return m.Stats
	}
	return nil
}

// MemberFailure returns why this process's member of a cluster has ended; nil: it has not, or there is
// none. Restart: a new process brings it back.
func (b *Backend) MemberFailure() (restart bool, err error) {
	if b == nil {
		return false, nil
	}
	if m, ok := b.DB.(clusterMember); ok {
		return m.Failure()
	}
	return false, nil
}

// Resize are the arguments of [Backend.Resize].
type Resize struct {
	Retired string   // the URL of the servers that leave the set; may be empty
	Lost    []string // names of servers whose data is gone for good
	Jump    int64    // more than one of these can have been ahead of all others; 0: the default
}

// Resize changes the number of ticket servers to that of the URL.
func (b *Backend) Resize(ctx context.Context, r Resize) error {
	db, ok := b.DB.(resizer)
	if !ok {
		return fmt.Errorf("resize store %s: %w: only ticket servers have a number", b.Name, leaf.ErrInvalid)
	}
	return b.Tags.wrap(db.Resize(ctx, r))
}

// Complete sets the name (the URL without its password) and the two parts.
func (b *Backend) Complete(name string) *Backend {
	b.Name = name
	b.Tags = Part{b: b, name: "store " + name}
	b.Workers = Part{b: b, name: "worker registry " + name, workers: true}
	if b.TagStore == nil {
		b.Tags.Unfit = fmt.Errorf("%w: URL %s is %w", leaf.ErrInvalid, name, hint.ErrWorkersOnly)
	}
	if _, ok := b.DB.(registryOpener); !ok && b.WorkerRegistry == nil {
		b.Workers.Unfit = fmt.Errorf("%w: URL %s is %w", leaf.ErrInvalid, name, hint.ErrTagsOnly)
	}
	return b
}
