package main

import (
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
			v := versionJSON{cli.ThisBuild(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return cli.Print(cmd.OutOrStdout(), asJSON, v, "%s version %s\n", cmd.Root().Name(), cli.VersionText())
		},
	}
	cli.OutputVar(cmd, &asJSON)
	return cmd
}

// A versionJSON is what `leaf version -o json` prints.
type versionJSON struct {
	cli.Build
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}
