// Package api describes the interfaces of a Leaf server for programs. Package leafv1, below
// leaf/v1, is the code generated for gRPC and Connect; generate.sh makes it.
package api

import "embed"

// OpenAPI is the description of the plain HTTP routes, in YAML.
//
//go:embed openapi.yaml
var OpenAPI string

// Protos holds the definitions of the services, as leaf/v1/*.proto.
//
//go:embed leaf/v1/*.proto
var Protos embed.FS
