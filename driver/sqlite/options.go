package sqlite

import (
	"log/slog"
)

// Options are the optional settings of [New]; nil means all defaults.
type Options struct {
	// Logger gets a line when transactions begin to fail and when they work again, and
	// for each row that cannot be a tag. Default: nothing is logged.
	Logger *slog.Logger

	// File is the user's path of the file, for errors and the log. Only with it can the store tell
	// a missing file from an unreadable one. Default: SQLite's path once the file is open.
	File string
}

func (o *Options) orDefault() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}
