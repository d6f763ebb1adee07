module github.com/leaf-id/leaf/bench

go 1.26.0

require github.com/leaf-id/leaf v0.0.0

replace github.com/leaf-id/leaf => ../
