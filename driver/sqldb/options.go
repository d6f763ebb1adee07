package sqldb

import "log/slog"

// Options are the optional settings of each driver; nil means all defaults.
type Options struct {
	// Logger gets a line when a database is first used, when calls begin to fail for a new reason,
	// and for each row that cannot be a tag. Default: nothing is logged.
	Logger *slog.Logger

	// File is the user's path of an SQLite file, for errors and the log. Only with it can the store
	// tell a missing file from an unreadable one. Default: SQLite's path once the file is open.
	File string
}

// WithDefaults returns a copy of o with its defaults.
func (o *Options) WithDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return opts
}
