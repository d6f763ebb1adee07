package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// completionTimeout bounds how long the shell of somebody who pressed the tab key
// hangs.
const completionTimeout = time.Second

// completeTag offers the tags of the server as the first argument.
func (c *client) completeTag(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	admin, err := c.admin()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	res, err := admin.ListTags(ctx, &leafv1.ListTagsRequest{})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var tags []cobra.Completion
	for _, t := range res.GetTags() {
		if strings.HasPrefix(t.GetName(), prefix) {
			tags = append(tags, cobra.CompletionWithDesc(printable(t.GetName()), printable(t.GetDescription())))
		}
	}
	return tags, cobra.ShellCompDirectiveNoFileComp
}
