package postgres

import (
	"log/slog"
)

// Options are the optional settings of a store or a registry; nil means all defaults.
type Options struct {
	// Logger gets a line when a database is first used, when a connection is given up for a new
	// reason, and for each row that cannot be a tag. Default: nothing is logged.
	Logger *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o == nil || o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}
