// Package api describes what a Leaf server offers to programs. Package leafv1, below
// leaf/v1, is the code generated for gRPC and Connect; generate.sh makes it.
package api

import _ "embed" // for OpenAPI

// OpenAPI is the description of the plain HTTP routes, in YAML.
//
//go:embed openapi.yaml
var OpenAPI string
