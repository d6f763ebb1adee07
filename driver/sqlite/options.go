package sqlite

import (
	"log/slog"
)

// Options are the optional settings of [New]; nil means all defaults.
type Options struct {
	// Logger gets a line when transactions begin to fail and when they work again, and
	// for each row that cannot be a tag. Default: nothing is logged.
	Logger *slog.Logger

	// File is the path of the file as people know it: errors and the log name it, and
	// only with it a file that is missing is told from one that cannot be opened.
	// Default: what SQLite says once it is open.
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
