// Package sqldb has what the drivers of SQL databases give: a [DB] with its [Store] and its
// [Registry]. Packages sqlite, mysql and postgres open one:
//
//	db, err := sqlite.New(pool, nil)
//	…
//	err = db.Ensure(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}})
//	set := segment.NewSet(db.Store(), nil)
//
// [DB.Init] and [DB.InitRegistry] create the tables. The table leaf_alloc is that of Java Leaf.
// Tables beside it keep the identity of the store (leaf_store), the counters of deleted tags
// (leaf_deleted) and the records of workers (leaf_worker).
package sqldb
