package sqlite

import (
	"log/slog"

	"github.com/leaf-id/leaf/internal/sqlstore"
)

type (
	// A DB is the tables of Leaf in one file: a [Store], a [Registry] or both.
	DB = sqlstore.DB

	// A Store keeps tags. It is a [segment.Store], a [segment.Returner] and a
	// [segment.Catalog]. Its methods are safe for concurrent use.
	Store = sqlstore.Store

	// A Registry keeps the records of workers. It is a [worker.Registry] and a
	// [worker.LossyRegistry]. Its methods are safe for concurrent use.
	Registry = sqlstore.Registry
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
