//go:build docs

package main

import "github.com/leaf-id/leaf/internal/cli"

// With the tag docs the program writes its man pages and completions into a folder and ends:
//
//	go run -tags docs ./cmd/leaf-bench bin/
func init() { cli.WriteDocs(newRoot()) }
