package cli

import (
	"runtime/debug"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"order 订单":   "order 订单",
		"\x1b[2Jred": `"\x1b[2Jred"`,
		" order":     `" order"`,
		"order ":     `"order "`,
		"":           "",
		"a\tb\nc":    `"a\tb\nc"`,
		"\xff":       `"\xff"`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("Printable(%q) = %s, want %s", text, got, want)
		}
	}
}

func TestDescribeVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef0123"}
	date := debug.BuildSetting{Key: "vcs.time", Value: "2026-11-25T04:30:00Z"}
	modified := debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	tests := []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"v1.2.3", nil, "v1.2.3"},
		{"v1.2.3", []debug.BuildSetting{commit, date}, "v1.2.3 (commit 0123456789ab of 2026-11-25)"},
		{"(devel)", []debug.BuildSetting{commit}, "(devel) (commit 0123456789ab)"},
		{"(devel)", []debug.BuildSetting{commit, date, modified}, "(devel) (commit 0123456789ab of 2026-11-25, modified)"},
		{"v0.0.0-20260101000000-0123456789ab", []debug.BuildSetting{commit, date}, "v0.0.0-20260101000000-0123456789ab"},
	}
	for _, test := range tests {
		if got := buildOf(test.version, test.settings).String(); got != test.want {
			t.Errorf("buildOf(%q) = %q, want %q", test.version, got, test.want)
		}
	}
}
