package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Version is set by the linker for a release: -ldflags "-X github.com/leaf-id/leaf/internal/cli.Version=v1.2.3".
var Version string

// VersionLine names a program and its version.
func VersionLine(program string) string {
	return fmt.Sprintf("%s %s, %s %s/%s", program, FullVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// FullVersion is the version with the commit, as far as the build recorded them.
func FullVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(Version, "(unknown)")
	}
	return describe(cmp.Or(Version, info.Main.Version, "(devel)"), info.Settings)
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
