module github.com/leaf-id/leaf/examples

go 1.26.0

require (
	entgo.io/ent v0.14.5
	github.com/bwmarrin/snowflake v0.3.0
	github.com/leaf-id/leaf v0.0.0
	github.com/sony/sonyflake v1.2.0
	gorm.io/gorm v1.31.2
)

require (
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/leaf-id/leaf => ../
