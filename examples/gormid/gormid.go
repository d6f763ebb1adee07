// Package gormid has gorm give new rows IDs of a tag.
package gormid

import (
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"github.com/leaf-id/leaf"
)

// Register has db give each new row without an ID the next one of ids. Call it once for a db.
func Register(db *gorm.DB, ids leaf.Generator) error {
	return db.Callback().Create().Before("gorm:create").Register("leaf:id", func(tx *gorm.DB) {
		if tx.Statement.Schema == nil || tx.Statement.Schema.PrioritizedPrimaryField == nil {
			return
		}
		field := tx.Statement.Schema.PrioritizedPrimaryField
		switch rows := tx.Statement.ReflectValue; rows.Kind() {
		case reflect.Slice, reflect.Array:
			for i := range rows.Len() {
				fill(tx, field, reflect.Indirect(rows.Index(i)), ids)
			}
		case reflect.Struct:
			fill(tx, field, rows, ids)
		}
	})
}

func fill(tx *gorm.DB, field *schema.Field, row reflect.Value, ids leaf.Generator) {
	if _, zero := field.ValueOf(tx.Statement.Context, row); !zero || tx.Error != nil {
		return
	}
	id, err := ids.Next(tx.Statement.Context)
	if err == nil {
		err = field.Set(tx.Statement.Context, row, id)
	}
	_ = tx.AddError(err) // ends the statement
}
