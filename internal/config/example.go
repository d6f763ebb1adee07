package config

import _ "embed"

//go:embed example.yaml
var example string

// Example returns a configuration file that explains every key and sets each to
// its default.
func Example() string { return example }
