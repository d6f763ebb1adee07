module github.com/leaf-id/leaf/bench

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/leaf-id/leaf v0.0.0
)

replace github.com/leaf-id/leaf => ../
