// Command leaf-bench puts load on a running Leaf server and compares all of its IDs.
package main

import (
	"context"
	"os"

	"github.com/leaf-id/leaf/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), newRoot(), os.Args[1:], os.Stdout, os.Stderr))
}
