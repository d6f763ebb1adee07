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
	// Logger gets a line about the durability of the server's settings, at the first use and after
	// each change. Default: nothing is logged.
	Logger *slog.Logger
}

// Open returns the store and the registry of config, which are the keys of one prefix. It neither
// connects nor creates anything: problems of the server show at the first call, and each further
// call checks again. The error wraps leaf.ErrInvalid.
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

// LogTo redirects the messages of the client library, such as the found sentinels, from standard
// error to logger, at level debug. It holds for the whole process.
func LogTo(logger *slog.Logger) { goredis.SetLogger(libraryLog{logger}) }

type libraryLog struct{ logger *slog.Logger }

func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	if l.logger.Enabled(ctx, slog.LevelDebug) {
		l.logger.DebugContext(ctx, "redis client", "msg", fmt.Sprintf(format, args...))
	}
}
