module github.com/leaf-id/leaf/examples

go 1.26.0

require (
	entgo.io/ent v0.14.5
	github.com/bwmarrin/snowflake v0.3.0
	github.com/leaf-id/leaf v0.0.0
	github.com/sony/sonyflake/v2 v2.2.0
	gorm.io/gorm v1.31.2
	gorm.io/sharding v0.6.1
)

require (
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/longbridgeapp/sqlparser v0.3.1 // indirect
	golang.org/x/exp v0.0.0-20230817173708-d852ddb80c63 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace github.com/leaf-id/leaf => ../
