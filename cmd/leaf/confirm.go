package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
)

// confirm returns nil if the user wants what cannot be undone: yes says so, or the answer
// on a terminal.
func confirm(cmd *cobra.Command, yes bool, what string) error {
	if yes {
		return nil
	}
	if !cli.IsTerminal(cmd.InOrStdin()) {
		err := fmt.Errorf("%s: it was not confirmed", what)
		return &cli.Error{Err: err, Code: cli.ExitUsage, Hint: "there is no terminal to ask at: say --yes"}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "leaf: %s? [y/N] ", what)
	answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // without an answer it is a no
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("nothing was done")
}
