package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long:  "Print the version of this program, the commit it was built from and its day, and the version of Go.",
		Args:  args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				b := cli.ThisBuild()
				return cli.PrintJSON(cmd.OutOrStdout(), versionJSON{b.Version, b.Commit, b.Date, b.Modified, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), cmd.Root().Name(), "version", cli.VersionText())
			return err
		},
	}
	cli.OutputVar(cmd, &asJSON)
	return cmd
}

// A versionJSON is what `leaf version -o json` prints.
type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}
