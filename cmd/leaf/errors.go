package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/hint"
)

// Exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

// A cliError is an error with a remedy.
type cliError struct {
	err  error
	hint string // may be empty
	code int    // 0: exitFailed
}

func (e *cliError) Error() string { return e.err.Error() }
func (e *cliError) Unwrap() error { return e.err }

// hinted adds a hint to err.
func hinted(err error, format string, args ...any) error {
	return &cliError{err: err, hint: fmt.Sprintf(format, args...)}
}

// usage marks err as a wrong use of cmd.
func usage(cmd *cobra.Command, err error) error {
	return &cliError{err: err, code: exitUsage, hint: fmt.Sprintf("see '%s --help'", cmd.CommandPath())}
}

// report writes err for its reader and returns the exit code.
func report(w io.Writer, err error) int {
	say(w, "error", err.Error())
	var e cliError
	if own, ok := errors.AsType[*cliError](err); ok {
		e = *own
	}
	if text := cmp.Or(e.hint, hint.Of(err)); text != "" {
		say(w, "hint", text)
	}
	return cmp.Or(e.code, exitFailed)
}

// say writes one message of the command line; further lines of it are indented.
func say(w io.Writer, kind, text string) {
	fmt.Fprintf(w, "leaf: %s: %s\n", kind, strings.ReplaceAll(text, "\n", "\n  "))
}
