module github.com/leaf-id/leaf/site

go 1.26.0

ignore ./node_modules
