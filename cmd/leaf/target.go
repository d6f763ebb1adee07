package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/hint"
)

// noteTarget explains in --help which server or store a command acts on.
const noteTarget = `The commands act through a server. With --%[1]s or --%[1]s-file they act on the %[2]s
itself, with or without servers around. They do the same, and say so, where the
environment names the %[2]s as it does for a server (%[3]s or %[3]s_FILE),
unless --server or LEAF_SERVER names a server.`

// A urlFlag is the URL of a store, or of a registry of worker IDs, for a command: from the command
// line, or from the environment under a server's names.
type urlFlag struct {
	name      string // of the flag: store or workers
	what, who string // for people
	check     func(url string) error
	url, file string
}

// instead is the use of a urlFlag next to --server.
const instead = ", to act on it without a server"

func storeFlag() urlFlag {
	return urlFlag{name: "store", what: "store", who: "the store", check: drivers.CheckStore}
}

func workersFlag() urlFlag {
	return urlFlag{name: "workers", what: "registry of worker IDs", who: "the worker registry", check: drivers.CheckRegistry}
}

func (u *urlFlag) addFlags(cmd *cobra.Command, use string) {
	cli.TextVar(cmd, &u.url, u.name, fmt.Sprintf("`URL` of the %s%s (default $%s)", u.what, use, u.env()))
	cli.TextVar(cmd, &u.file, u.name+"-file", fmt.Sprintf("`FILE` that holds this URL (default $%s_FILE)", u.env()))
}

func (u *urlFlag) env() string { return "LEAF_" + strings.ToUpper(u.name) }

// given reports whether the command line names a URL.
func (u *urlFlag) given() bool { return u.url != "" || u.file != "" }

// fromFlags returns the URL on the command line, or "".
func (u *urlFlag) fromFlags(cmd *cobra.Command) (string, error) {
	if u.url != "" && u.file != "" {
		return "", cli.Usage(cmd, fmt.Errorf("give either --%s or --%[1]s-file", u.name))
	}
	if u.url != "" {
		return u.url, u.checkFlag()
	}
	return u.read(u.file, "--"+u.name+"-file")
}

// checkFlag reports a flag that names no store or registry, as the wrong command line
// that it is. It contacts nothing.
func (u *urlFlag) checkFlag() error {
	err := u.explain(u.check(u.url), "--"+u.name)
	if wrong, ok := errors.AsType[*cli.Error](err); ok {
		wrong.Code = cli.ExitUsage
	}
	return err
}

// fromEnv returns the URL that the environment names, and the name of the variable.
func (u *urlFlag) fromEnv() (url, from string, err error) {
	url, file := os.Getenv(u.env()), os.Getenv(u.env()+"_FILE")
	switch {
	case url != "" && file != "":
		return "", "", fmt.Errorf("%s and %[1]s_FILE are both set: set one of them", u.env())
	case file != "":
		from = u.env() + "_FILE"
		url, err = u.read(file, from)
	case url != "":
		from = u.env()
		err = u.explain(u.check(url), from)
	}
	return url, from, err
}

func (u *urlFlag) read(file, from string) (string, error) {
	if file == "" {
		return "", nil
	}
	url, err := config.ReadURL(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", from, err)
	}
	return url, u.explain(u.check(url), from+" "+file)
}

func (u *urlFlag) explain(err error, from string) error {
	if !errors.Is(err, leaf.ErrInvalid) {
		return err
	}
	return cli.Hinted(fmt.Errorf("%s: %w", from, err), "%s", cmp.Or(hint.Of(err), "'leaf init --help' lists the URLs of stores and worker registries"))
}

// target returns the URL that a command acts on itself; "": it asks a server. An address on the
// command line wins over the environment. In the environment the server's address wins, which is
// for commands alone.
func target(cmd *cobra.Command, c *cli.Client, u *urlFlag) (string, error) {
	switch {
	case c.Server != "" && u.given():
		return "", cli.Usage(cmd, fmt.Errorf("give either --server or --%s", u.name))
	case u.given():
		return u.fromFlags(cmd)
	case c.Server != "" || os.Getenv("LEAF_SERVER") != "":
		return "", nil
	}
	url, from, err := u.fromEnv()
	if err == nil && url != "" {
		cli.Say(cmd, "note", fmt.Sprintf("acting on the %s %s itself, as %s is set: name a server with --server URL to act through that",
			u.what, drivers.Redact(url), from))
	}
	return url, err
}
