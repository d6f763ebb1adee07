package main

import (
	"fmt"
	"strings"

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

func newRoot() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "leaf",
		Short: "Unique IDs from one command",
		Long:  rootLong,
	})
	root.AddCommand(newServe(), newInit(), newNext(), newDecode(), newEncode(), newTag(), newWorker(), newCluster(), newImport(), newStatus(), newToken(), newConfig(), newVersion())
	root.InitDefaultCompletionCmd("")
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		group(completion)
	}
	return root
}

// group makes cmd one that does nothing but hold others.
func group(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return cli.UnknownCommand(cmd, args[0])
	}
	return cmd
}

// someArgs checks that a command gets at least one argument, with this name.
func someArgs(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		return args(name)(cmd, given[:min(len(given), 1)])
	}
}

// args checks that a command gets exactly one argument for each name.
func args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return cli.Usage(cmd, fmt.Errorf("%s is missing", strings.Join(names[len(args):], " and ")))
		case len(args) > len(names):
			return cli.Usage(cmd, fmt.Errorf("%q is one argument too many", args[len(names)]))
		}
		return nil
	}
}
