// Command leaf is the Leaf server and its command line.
package main

import (
	"context"
	"log/slog"
	"os"
	_ "time/tzdata" // for periods, where the machine has no time zones

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/drivers"
)

func main() {
	drivers.LogTo(slog.New(slog.DiscardHandler)) // errors report the problems
	os.Exit(cli.Run(context.Background(), newRoot(), os.Args[1:], os.Stdout, os.Stderr))
}
