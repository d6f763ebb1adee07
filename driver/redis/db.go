package redis

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf/driver/kv"
)

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	// Logger gets a line about what the server's settings mean for what is written,
	// at first use and whenever that changes. Default: nothing is logged.
	Logger *slog.Logger
}

// Open returns the store and the registry that config names, which are the keys of one
// prefix. It does not connect and creates nothing: what is wrong with the server shows at
// the first call, and each call looks anew until all is well. The error wraps
// leaf.ErrInvalid.
func Open(config Config, opts *Options) (*kv.DB, error) {
	logger := slog.New(slog.DiscardHandler)
	if opts != nil {
		logger = cmp.Or(opts.Logger, logger)
	}
	c, err := newClient(config, logger)
	if err != nil {
		return nil, fmt.Errorf("open redis: %w", err)
	}
	return kv.New(backend{c}, nil), nil
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
