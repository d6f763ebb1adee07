package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
)

const rootLong = `Leaf hands out unique 64-bit IDs over HTTP, gRPC and the command line.

IDs come from tags (scheme segment). A tag is a named counter in a database (the
store); a server takes runs of it, called segments, into memory and hands them out one
by one. Or they are made of the time (scheme snowflake), a worker ID that no other
server has, and a sequence number.

Start a server, with an embedded database, and ask it for IDs:

  leaf serve
  curl http://127.0.0.1:8080/v1/ids/segment/leaf-segment-test
  curl http://127.0.0.1:8080/v1/ids/snowflake/any

The IDs are strings in JSON, since numbers of JavaScript are exact only up to 2^53. The
routes of Java Leaf (/api/segment/get/TAG) answer bare numbers.

Exit codes: 0 done, 1 failed, 2 the command line was wrong.`

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Run(ctx, newRoot(), args, stdout, stderr)
}

func newRoot() *cobra.Command {
	root := cli.Group(&cobra.Command{
		Use:   "leaf",
		Short: "Unique IDs from one command",
		Long:  rootLong,
	})
	root.AddCommand(newServe(), newInit(), newNext(), newDecode(), newTag(), newWorker(), newStatus(), newToken(), newConfig(), newVersion())
	root.InitDefaultCompletionCmd("")
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		cli.Group(completion)
	}
	return root
}
