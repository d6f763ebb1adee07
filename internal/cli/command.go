// Package cli has the common parts of the commands leaf and leaf-bench: flags, errors with hints,
// and calls to a server.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leaf-id/leaf/internal/edit"
	"github.com/leaf-id/leaf/segment"
)

// Run executes one command line of root and returns its exit code.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.Version = VersionText() // cobra adds the name; a template of our own would double the program
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.SetFlagErrorFunc(flagError)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		return report(root, err)
	}
	return 0
}

// flagError adds the flag of the nearest name to the error of an unknown one. A group of commands has
// few flags: after an unknown command, that word is the error.
func flagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return UnknownCommand(cmd, words[0])
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return Usage(cmd, err)
	}
	given, near, least := unknown.GetSpecifiedName(), "", 3
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if d := edit.Distance(given, f.Name); !f.Hidden && d < least {
			near, least = f.Name, d
		}
	})
	if near == "" || len(given) < 2 {
		return Usage(cmd, err)
	}
	return &Error{Err: err, Code: ExitUsage, Hint: fmt.Sprintf("did you mean '--%s'?", near)}
}

// UnknownCommand reports an unknown command of a group.
func UnknownCommand(group *cobra.Command, word string) error {
	err := fmt.Errorf("unknown command %q for '%s'", word, group.CommandPath())
	group.SuggestionsMinimumDistance = 2
	if near := group.SuggestionsFor(word); len(near) > 0 {
		return &Error{Err: err, Code: ExitUsage, Hint: fmt.Sprintf("did you mean '%s %s'?", group.CommandPath(), near[0])}
	}
	return Usage(group, err)
}

// CheckTag reports a name that no tag may have as a wrong use of cmd.
func CheckTag(cmd *cobra.Command, name string) error {
	if err := segment.CheckTagName(name); err != nil {
		return Usage(cmd, err)
	}
	return nil
}
