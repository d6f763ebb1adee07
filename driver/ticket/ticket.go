package ticket

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// Options are the optional settings of [New]; nil means all defaults.
type Options struct {
	// Layout is how the servers share out the IDs. Default: Flickr's scheme.
	Layout Layout

	// Logger gets a line when a server is first used, left out or put back.
	// Default: nothing is logged.
	Logger *slog.Logger

	// Timeout is how long one server may take. One that answered before gets a fifth of it for a
	// draw while another one can still be tried. Default: 2 s.
	Timeout time.Duration
}

// A DB is a set of ticket servers.
type DB struct {
	servers []Server
	store   *Store
}

// New returns the set of these servers, in any order except for [DB.Init] and [DB.Resize]. It
// connects at the first call, which reports the problems. Errors wrap [leaf.ErrInvalid].
func New(servers []Server, opts *Options) (*DB, error) {
	if opts == nil {
		opts = &Options{}
	}
	members, err := newMembers(servers)
	if err = cmp.Or(opts.Layout.check(), err); err != nil {
		return nil, fmt.Errorf("open ticket store: %w", err)
	}
	s := &Store{members: members, layout: opts.Layout, logger: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)), timeout: opts.Timeout}
	if s.timeout <= 0 {
		s.timeout = defaultTimeout
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return &DB{servers, s}, nil
}

// Store returns the store of tags. Ticket servers keep no worker IDs.
func (db *DB) Store() *Store { return db.store }

// Init makes the servers, which number 1 … N in their order, a set, with the given tags. If one of
// them is part of a set, the error wraps [io/fs.ErrExist]. Init takes over an existing table
// Tickets64 as it is, above its highest ticket on any server. [DB.Resize] completes an interrupted
// Init.
func (db *DB) Init(ctx context.Context, tags []segment.Tag) error {
	err := segment.CheckTags(tags)
	for _, tag := range tags {
		err = cmp.Or(err, onlyDescribed(tag.Options))
	}
	if err == nil {
		err = (&resizer{layout: db.store.layout, fresh: true, tags: tags}).run(ctx, db.servers, nil)
	}
	return wrap(err, "init ticket store")
}

// Resize makes the servers, which number 1 … N in their order, the set from now on. Together with
// the retired or lost servers they must be every server of the old set, and all but the lost ones
// must answer. Meanwhile nothing is issued. Afterwards the servers refuse clients of the old set.
// After an interruption it is safe to run again, also with other servers.
func (db *DB) Resize(ctx context.Context, opts *ResizeOptions) error {
	if opts == nil {
		opts = &ResizeOptions{}
	}
	r := &resizer{layout: db.store.layout, lost: opts.Lost, jump: cmp.Or(opts.Jump, DefaultJump)}
	return wrap(r.run(ctx, db.servers, opts.Retired), "resize ticket store")
}

// Close ends the use of the databases, which stay open: they are the caller's. Later calls fail
// with an error that wraps [leaf.ErrClosed].
func (db *DB) Close() error { return db.store.Close() }
