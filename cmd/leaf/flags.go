package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// A text is a flag that says something if it is given at all: one that is empty is most
// likely a variable of the shell that is not set.
type text string

func (t *text) String() string { return string(*t) }
func (*text) Type() string     { return "string" }

func (t *text) Set(value string) error {
	if value == "" {
		return errors.New("it is empty")
	}
	*t = text(value)
	return nil
}

// outputVar defines the flag for the form of what a command prints.
func outputVar(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().VarP((*output)(asJSON), "output", "o", "print `text|json`")
}

type output bool // whether it is JSON

func (o *output) String() string {
	return choose(bool(*o), "json", "text")
}
func (*output) Type() string { return "string" }

func (o *output) Set(value string) error {
	if value != "json" && value != "text" {
		return errors.New("it is neither text nor json")
	}
	*o = value == "json"
	return nil
}

// wholeVar defines a flag for a whole number.
func wholeVar(cmd *cobra.Command, p *int64, name, short string, value int64, usage string) {
	*p = value
	cmd.Flags().VarP((*whole)(p), name, short, usage)
}

type whole int64

func (w *whole) String() string { return strconv.FormatInt(int64(*w), 10) }
func (*whole) Type() string     { return "int" }

func (w *whole) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return errors.New("it is too large")
	case err != nil:
		return errors.New("it is not a whole number")
	}
	*w = whole(n)
	return nil
}

// patienceVar defines a flag for how long to wait.
func patienceVar(cmd *cobra.Command, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	cmd.Flags().Var((*patience)(p), name, usage)
}

type patience time.Duration

func (p *patience) String() string { return time.Duration(*p).String() }
func (*patience) Type() string     { return "duration" }

func (p *patience) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("it is not a duration such as 10s, 1.5s or 500ms")
	case d <= 0:
		return errors.New("it is not above 0")
	}
	*p = patience(d)
	return nil
}
