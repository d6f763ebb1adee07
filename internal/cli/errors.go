package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/hint"
)

// Exit codes.
const (
	ExitFailed = 1
	ExitUsage  = 2
)

// An Error is an error with a remedy.
type Error struct {
	Err  error
	Text string // in words for people; empty: that of Err
	Hint string // may be empty
	Code int    // 0: ExitFailed
}

func (e *Error) Error() string { return cmp.Or(e.Text, e.Err.Error()) }
func (e *Error) Unwrap() error { return e.Err }

// Hinted adds a hint to err.
func Hinted(err error, format string, args ...any) error {
	return &Error{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// Usage marks err as a wrong use of cmd.
func Usage(cmd *cobra.Command, err error) error {
	return &Error{Err: err, Code: ExitUsage, Hint: fmt.Sprintf("see '%s --help'", cmd.CommandPath())}
}

// report writes err for its reader and returns the exit code.
func report(cmd *cobra.Command, err error) int {
	Say(cmd, "error", err.Error())
	var e Error
	if own, ok := errors.AsType[*Error](err); ok {
		e = *own
	}
	if text := cmp.Or(e.Hint, hint.Of(err)); text != "" {
		Say(cmd, "hint", text)
	}
	return cmp.Or(e.Code, ExitFailed)
}

// Say writes messages, such as notes or a hint, to the standard error; further lines of one are
// indented.
func Say(cmd *cobra.Command, kind string, texts ...string) {
	for _, text := range texts {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s\n", cmd.Root().Name(), kind, strings.ReplaceAll(text, "\n", "\n  "))
	}
}
