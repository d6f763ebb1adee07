package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is set by the linker for a release: -ldflags "-X main.version=v1.2.3".
var version string

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Long:  "Print the version of this program, the commit it was built from, and the version of Go.",
		Args:  args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), versionJSON{fullVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
	outputVar(cmd, &asJSON)
	return cmd
}

// A versionJSON is what `leaf version -o json` prints.
type versionJSON struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func versionLine() string {
	return fmt.Sprintf("leaf %s, %s %s/%s", fullVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// fullVersion is the version with the commit, as far as the build recorded them.
func fullVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(version, "(unknown)")
	}
	return describe(cmp.Or(version, info.Main.Version, "(devel)"), info.Settings)
}

func describe(version string, settings []debug.BuildSetting) string {
	var revision, modified string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ", modified"
		}
	}
	if revision == "" || strings.Contains(version, revision) {
		return version
	}
	return fmt.Sprintf("%s (commit %s%s)", version, revision, modified)
}
