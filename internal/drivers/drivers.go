package drivers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// ErrNothingToCreate is wrapped where a registry needs no [Part.Init].
var ErrNothingToCreate = errors.New("there is nothing to create")

// A Backend is what a URL names: a store of tags, a registry of worker IDs, or both over
// one pool of connections.
type Backend struct {
	Name   string // the URL, without its password
	Traits Traits

	// Key identifies the state behind the URL, without credentials and parameters: two
	// URLs of one state have one key, as far as can be told without asking the server.
	Key string

	Tags, Workers Part

	store    func() (segment.Store, error)                             // nil: it keeps no tags
	registry func(RegistryOptions) (worker.Registry, error)            // nil: it keeps no worker IDs
	resize   func(context.Context, string, ticket.ResizeOptions) error // nil: it has no number of servers
	close    func() error                                              // nil: nothing is open
	opened   []io.Closer
}

// Traits say what holds of a backend. The zero value is that of a database server.
type Traits struct {
	Local      bool // no other machine reaches it
	Ticket     bool // the tags' IDs come from ticket servers
	Assigned   bool // the registry says which worker ID to use
	Disposable bool // each start of a process uses a worker ID up, so there is no [worker.StateFile] to keep

	// What the URL asks for, and the kind of registry calls for: see [worker.Options].
	Reclaim    bool
	Settle     bool
	ClaimDelay time.Duration // 0: the default; negative: none
	MaxAhead   time.Duration // of the clock, at most; 0: not bounded
}

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	Logger *slog.Logger // default: nothing is logged
}

// Open returns what a URL names. It neither connects nor creates anything; it fails,
// wrapping [leaf.ErrInvalid], if the URL is malformed.
func Open(rawURL string, o *Options) (*Backend, error) {
	name := Redact(rawURL)
	d, u, err := find(rawURL)
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", name, err)
	}
	if o != nil && o.Logger != nil {
		u.log = o.Logger
	}
	b, err := d.parse(u)
	if err == nil {
		b.complete(d.scheme, name, u)
		err = b.checkTerms()
	}
	if _, ok := errors.AsType[malformed](err); ok {
		err = fmt.Errorf("%w: %w: write %s", leaf.ErrInvalid, err, d.form)
	}
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", name, err)
	}
	return b, nil
}

// complete fills in what is the same for all drivers.
func (b *Backend) complete(scheme, name string, u *target) {
	// Whether the way to a server is encrypted does not make it another one.
	b.Name, b.Key = name, strings.Replace(scheme, "rediss", "redis", 1)+":"+b.Key
	b.Traits.Reclaim, b.Traits.ClaimDelay = u.reclaim, u.claimDelay
	b.Tags.name, b.Tags.check = "store "+name, b.checkStore
	b.Workers.name, b.Workers.check = "worker registry "+name, b.checkRegistry
	switch {
	case b.store == nil:
		b.Tags.Unfit = fmt.Errorf("%w: URL %s is %w", leaf.ErrInvalid, name, hint.ErrWorkersOnly)
	case u.forWorkers != "":
		b.Tags.Unfit = fmt.Errorf("%w: URL %s: %s is %w", leaf.ErrInvalid, name, u.forWorkers, hint.ErrWorkersOnly)
	}
	if b.registry == nil {
		b.Workers.Unfit = fmt.Errorf("%w: URL %s is %w", leaf.ErrInvalid, name, hint.ErrTagsOnly)
	}
}

// checkTerms closes a backend, and says why, whose URL has parameters that mean nothing to
// this kind of registry.
func (b *Backend) checkTerms() error {
	switch {
	case b.Traits.Reclaim && !b.Traits.Assigned:
		return errors.Join(invalid("%s=machine is for worker IDs that are assigned (static:, zookeeper: with layout=leaf); "+
			"here another one is claimed instead", paramReclaim), b.Close())
	case b.Traits.Disposable && b.Traits.ClaimDelay != 0:
		return errors.Join(invalid("%s means nothing with %s=%s: no start waits for another one", paramClaimDelay, paramLayout, layoutNodes), b.Close())
	}
	return nil
}

// CheckStore reports, wrapping [leaf.ErrInvalid], why a URL names no store. It contacts
// nothing.
func CheckStore(rawURL string) error {
	b, err := Open(rawURL, nil)
	if err != nil {
		return err
	}
	_, err = b.Store() // which looks at some more than Open
	return errors.Join(err, b.Close())
}

// CheckRegistry is CheckStore for registries of worker IDs.
func CheckRegistry(rawURL string) error {
	b, err := Open(rawURL, nil)
	if err != nil {
		return err
	}
	return errors.Join(b.Workers.Unfit, b.Close())
}

// Store returns the store of tags, which ends with the backend.
func (b *Backend) Store() (segment.Store, error) {
	return open(b, &b.Tags, b.store)
}

// RegistryOptions are the optional settings of [Backend.Registry]; nil means all defaults.
type RegistryOptions struct {
	// Lock opens and locks a file of the data directory. static: needs it.
	Lock func(name string) (*os.File, error)

	// Ahead is how far beyond the clock this server issues: static: holds a worker ID
	// of which it knows nothing back for as long.
	Ahead time.Duration

	// Port tells this server from others at its address in Java Leaf's tree where the
	// URL names none; 0: the URL must.
	Port int

	// Memory remembers over restarts which worker IDs of WORKER_NODE this machine was
	// dealt; nil: nothing does.
	Memory segment.Memory

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
	return open(b, &b.Workers, func() (worker.Registry, error) { return b.registry(*o) })
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

// Close ends what was opened, and the connections.
func (b *Backend) Close() error {
	var errs []error
	for _, c := range slices.Backward(b.opened) {
		errs = append(errs, c.Close())
	}
	if b.close != nil {
		errs = append(errs, b.close())
	}
	return errors.Join(errs...)
}

// Resize has ticket servers, which exist, become as many as the URL names. The retired
// ones, whose URL may be empty, leave the set.
func (b *Backend) Resize(ctx context.Context, retired string, o ticket.ResizeOptions) error {
	if b.resize == nil {
		return fmt.Errorf("resize store %s: %w: only ticket servers have a number", b.Name, leaf.ErrInvalid)
	}
	return b.Tags.wrap(b.resize(ctx, retired, o))
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

	name   string                                     // for people
	init   func(context.Context, []segment.Tag) error // nil: there is nothing to create
	exists func(context.Context) (bool, error)
	check  func(context.Context) error
}

// Init creates the durable state, a store with these tags in it. It fails, wrapping
// [io/fs.ErrExist], if that exists, and leaves it as it is; and, wrapping
// [ErrNothingToCreate], where nothing has to be created.
func (p *Part) Init(ctx context.Context, tags ...segment.Tag) error {
	switch {
	case p.Unfit != nil:
		return p.Unfit
	case p.init == nil:
		return fmt.Errorf("create %s: %w", p.name, ErrNothingToCreate)
	}
	return p.wrap(p.init(ctx, tags))
}

// Exists reports whether [Part.Init] has created the state, or need not.
func (p *Part) Exists(ctx context.Context) (bool, error) {
	if p.Unfit != nil || p.init == nil {
		return p.Unfit == nil, p.Unfit
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
