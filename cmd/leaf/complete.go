package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// completionTimeout bounds how long the shell of somebody who pressed the tab key
// hangs.
const completionTimeout = time.Second

// completeTag offers the tags of the server as the first argument.
func (c *client) completeTag(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeTag(cmd, args, prefix, func(complete func(tagAdmin) error) error {
		admin, err := c.admin()
		if err != nil {
			return err
		}
		return complete(&serverAdmin{c, admin})
	})
}

// completeTag offers the tags of what the command acts on.
func (a *adminFlags) completeTag(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return completeTag(cmd, args, prefix, func(complete func(tagAdmin) error) error { return a.with(cmd, complete) })
}

func completeTag(cmd *cobra.Command, args []string, prefix string, with func(func(tagAdmin) error) error) (tags []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	_ = with(func(admin tagAdmin) error { // what is wrong, the command itself will tell
		all, err := admin.list(ctx)
		for _, t := range all {
			if strings.HasPrefix(t.Name, prefix) {
				tags = append(tags, cobra.CompletionWithDesc(printable(t.Name), printable(t.Description)))
			}
		}
		return err
	})
	return tags, cobra.ShellCompDirectiveNoFileComp
}
