package redis

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
)

// Options are the optional settings of a [DB]; nil means all defaults.
type Options struct {
	// Logger gets a line about what the server's settings mean for what is written,
	// at first use and whenever that changes. Default: nothing is logged.
	Logger *slog.Logger
}

// A DB is the keys of one prefix. It may hold a [Store], a [kv.Registry] or both.
type DB struct {
	client *client
	cells  *kv.DB
	store  *Store
}

// Open returns the DB that config names. It does not connect and creates nothing: what is
// wrong with the server shows at the first call, and each call looks anew until all is
// well. The error wraps [leaf.ErrInvalid].
func Open(config Config, opts *Options) (*DB, error) {
	logger := slog.New(slog.DiscardHandler)
	if opts != nil {
		logger = cmp.Or(opts.Logger, logger)
	}
	c, err := newClient(config, logger)
	if err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	cells := kv.New(backend{c}, nil)
	return &DB{client: c, cells: cells, store: &Store{c}}, nil
}

// Store returns the store of tags. Its calls fail, wrapping [segment.ErrNotCreated], until
// it was created.
func (d *DB) Store() *Store { return d.store }

// Registry returns the registry of workers. Its calls fail, wrapping worker.ErrNotCreated,
// until it was created.
func (d *DB) Registry() *kv.Registry { return d.cells.Registry() }

// Init creates the store, with tags in it. If there is one under the prefix it fails,
// wrapping [fs.ErrExist], and changes nothing.
func (d *DB) Init(ctx context.Context, tags []segment.Tag) error {
	cmd := command{script: initScript, keys: []string{d.store.marker(), d.store.index()}, confirm: true}
	err := segment.CheckTags(tags)
	for _, tag := range tags {
		cmd.keys = append(cmd.keys, d.store.counter(tag.Name))
		cmd.args = append(cmd.args, tag.Name, tag.MaxID, tag.Step, tag.Description)
	}
	if err == nil {
		_, err = d.client.run(ctx, cmd)
	}
	return wrap(err, "create redis store")
}

// InitRegistry creates the registry. If there is one under the prefix it fails, wrapping
// [fs.ErrExist], and changes nothing.
func (d *DB) InitRegistry(ctx context.Context) error { return d.cells.InitRegistry(ctx) }

// Close ends the connections, unless they are of Config.Client. Later calls fail with an
// error that wraps leaf.ErrClosed.
func (d *DB) Close() error { return d.cells.Close() }

// An existsError is [fs.ErrExist], without its words about files.
type existsError struct{ key string }

func (e existsError) Error() string        { return "there is a key " + e.key + " already" }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }

func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

// LogTo has the client library report to logger, at level debug, what it otherwise
// writes to standard error: which sentinels it found, for example. It holds for the whole
// process.
func LogTo(logger *slog.Logger) { goredis.SetLogger(libraryLog{logger}) }

type libraryLog struct{ logger *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	if l.logger.Enabled(ctx, slog.LevelDebug) {
		l.logger.DebugContext(ctx, "redis client", "msg", fmt.Sprintf(format, args...))
	}
}
