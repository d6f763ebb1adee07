package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
)

// completionTimeout bounds how long a shell waits for completions.
const completionTimeout = time.Second

// completeTag offers the tags of the server as the first argument.
func completeTag(c *cli.Client, cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	a := admin{Client: *c, flag: storeFlag()}
	if a.Server == "" { // the environment's server is for administration
		a.Server, _ = c.Address()
	}
	return a.completeTag(cmd, args, prefix)
}

func (a *admin) completeTag(cmd *cobra.Command, args []string, prefix string) (tags []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	_ = a.with(cmd, func() error { // the command itself will report the problem
		all, err := a.listTags(ctx)
		for _, t := range all {
			if strings.HasPrefix(t.Tag, prefix) {
				tags = append(tags, cobra.CompletionWithDesc(cli.Printable(t.Tag), cli.Printable(t.Description)))
			}
		}
		return err
	})
	return tags, cobra.ShellCompDirectiveNoFileComp
}
