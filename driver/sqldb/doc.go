// Package sqldb has the types behind the drivers of SQL databases: a [DB] with its [Store] and its
// [Registry]. Packages sqlite, mysql and postgres open one:
//
//	db, err := sqlite.New(pool, nil)
//	…
//	err = db.Ensure(ctx, []segment.Tag{{Name: "order", MaxID: 1, Step: 1000}})
//	set := segment.NewSet(db.Store(), nil)
//
// [DB.Init] and [DB.InitRegistry] create the tables. Java Leaf can use the table leaf_alloc.
// Further tables keep the identity of the store (leaf_store), the counters of deleted tags
// (leaf_deleted), the options of tags (leaf_option), the counters of
// tags without a stock (leaf_strict) and the records of workers (leaf_worker).
//
// NextTx of a driver takes numbers from the table leaf_series, inside the caller's own transaction;
// no DB and no server uses that table.
package sqldb
