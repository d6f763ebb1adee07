// Package shardid has gorm.io/sharding give new rows IDs of a tag.
package shardid

import (
	"context"

	"gorm.io/sharding"

	"github.com/leaf-id/leaf"
)

// Plugin returns the plugin for tables with 64 shards each, by the user of a row; give it to
// db.Use. failed receives the reason for a missing ID: see [Generator].
func Plugin(ids leaf.Generator, failed func(error), tables ...any) *sharding.Sharding {
	return sharding.Register(sharding.Config{
		ShardingKey:           "user_id",
		NumberOfShards:        64,
		PrimaryKeyGenerator:   sharding.PKCustom,
		PrimaryKeyGeneratorFn: Generator(ids, failed),
	}, tables...)
}

// Generator returns a PrimaryKeyGeneratorFn for all tables of a config: the IDs of one tag are
// unique over all shards.
//
// The plugin has no way to pass an error on. Without an ID it inserts the row without the
// column id, so that column must be NOT NULL and have no default and no auto-increment: the
// database then refuses the row. failed receives the reason. Package gormid has no such gap;
// with it, the function of the config returns 0.
func Generator(ids leaf.Generator, failed func(error)) func(tableIdx int64) int64 {
	return func(int64) int64 {
		id, err := ids.Next(context.Background()) // ends when the client has waited long enough
		if err != nil {
			failed(err)
			return 0
		}
		return id
	}
}
