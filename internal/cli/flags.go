package cli

import (
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// A value is a flag that describes a fault of its text in plain words.
type value struct {
	kind string
	text func() string
	set  func(string) error
}

func (v value) String() string         { return v.text() }
func (v value) Type() string           { return v.kind }
func (v value) Set(given string) error { return v.set(given) }

// TextVar defines a flag that must not be empty: an empty one is most likely an unset variable of
// the shell.
func TextVar(cmd *cobra.Command, p *string, name, usage string) {
	cmd.Flags().Var(value{"string", func() string { return *p }, func(given string) error {
		if *p = given; given == "" {
			return errors.New("it is empty")
		}
		return nil
	}}, name, usage)
}

// OutputVar defines the flag for the output format.
func OutputVar(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().VarP(value{"string", func() string { return Choose(*asJSON, "json", "text") }, func(given string) error {
		if *asJSON = given == "json"; given != "json" && given != "text" {
			return errors.New("it is neither text nor json")
		}
		return nil
	}}, "output", "o", "print `text|json`")
}

// WholeVar defines a flag for a whole number.
func WholeVar(cmd *cobra.Command, p *int64, name, short string, standard int64, usage string) {
	*p = standard
	cmd.Flags().VarP(value{"int", func() string { return strconv.FormatInt(*p, 10) }, func(given string) (err error) {
		*p, err = strconv.ParseInt(given, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return errors.New("it is too large")
		case err != nil:
			return errors.New("it is not a whole number")
		}
		return nil
	}}, name, short, usage)
}

// DurationVar defines a flag for a duration of at least the given one.
func DurationVar(cmd *cobra.Command, p *time.Duration, name, short string, standard, least time.Duration, usage string) {
	*p = standard
	cmd.Flags().VarP(value{"duration", func() string { return p.String() }, func(given string) (err error) {
		*p, err = time.ParseDuration(given)
		switch {
		case err != nil:
			return errors.New("it is not a duration such as 10s, 1.5s or 500ms")
		case *p < least:
			return errors.New(Choose(least > 0, "it is not above 0", "it is below 0"))
		}
		return nil
	}}, name, short, usage)
}
