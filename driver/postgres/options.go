package postgres

import "github.com/leaf-id/leaf/internal/sqlstore"

type (
	// A DB is the tables of Leaf in one database: a [Store], a [Registry] or both.
	DB = sqlstore.DB

	// A Store keeps tags. It is a [segment.Store], a [segment.Returner] and a
	// [segment.Catalog]. Its methods are safe for concurrent use.
	Store = sqlstore.Store

	// A Registry keeps the records of workers. It is a [worker.Registry] and a
	// [worker.LossyRegistry]. Its methods are safe for concurrent use.
	Registry = sqlstore.Registry

	// Options are the optional settings of [New]; nil means all defaults. The field
	// Logger, a [*slog.Logger], gets a line when a database is first used, when a
	// connection is given up for a new reason, and for each row that cannot be a tag.
	// Default: nothing is logged.
	Options = sqlstore.Options
)
