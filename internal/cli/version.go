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

// A Build tells which version and commit of the code a program is, as far as its build recorded them.
type Build struct {
	Version  string `json:"version"`            // v1.2.3, v0.0.0-20261125043000-0123456789ab or (devel)
	Commit   string `json:"commit,omitempty"`   // the first 12 digits
	Date     string `json:"date,omitempty"`     // of the commit: 2026-11-25T04:30:00Z
	Modified bool   `json:"modified,omitempty"` // after the commit
}

// ThisBuild describes this program. 'go install MODULE@VERSION' records the version, and a build in
// a checkout the commit.
func ThisBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Build{Version: cmp.Or(Version, "(unknown)")}
	}
	return buildOf(cmp.Or(Version, info.Main.Version, "(devel)"), info.Settings)
}

func buildOf(version string, settings []debug.BuildSetting) Build {
	b := Build{Version: version}
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the version with its commit and the day of that, unless the version names them.
func (b Build) String() string {
	if b.Commit == "" || strings.Contains(b.Version, b.Commit) {
		return b.Version
	}
	text := b.Version + " (commit " + b.Commit
	if day, _, ok := strings.Cut(b.Date, "T"); ok {
		text += " of " + day
	}
	if b.Modified {
		text += ", modified"
	}
	return text + ")"
}

// VersionText is the output of the flag --version after the program's name and the word "version".
func VersionText() string {
	return fmt.Sprintf("%s, %s %s/%s", ThisBuild(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
