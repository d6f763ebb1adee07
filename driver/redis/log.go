package redis

import (
	"context"
	"fmt"
	"log/slog"

	goredis "github.com/redis/go-redis/v9"
)

// LogTo has the client library below report to logger, at level debug, what it
// otherwise writes to standard error: which sentinels it found, for example. It holds
// for the whole process.
func LogTo(logger *slog.Logger) { goredis.SetLogger(libraryLog{logger}) }

type libraryLog struct{ logger *slog.Logger }

// Printf takes what the library has to say; errors are returned anyway.
func (l libraryLog) Printf(ctx context.Context, format string, args ...any) {
	if l.logger.Enabled(ctx, slog.LevelDebug) {
		l.logger.DebugContext(ctx, "redis client", "msg", fmt.Sprintf(format, args...))
	}
}
