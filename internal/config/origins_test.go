package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
)

func TestOrigins(t *testing.T) {
	tests := []struct {
		file, env string
		want      []string
		problem   string
	}{
		{"", "", nil, ""},
		{"cors_origins: []\n", "", nil, ""},
		{"cors_origins: [\"https://a.example\", 'http://b.example:8080']\n", "", []string{"https://a.example", "http://b.example:8080"}, ""},
		{"cors_origins: https://a.example\n", "", []string{"https://a.example"}, ""},
		{"cors_origins: ['*']\n", "", []string{"*"}, ""},
		{"cors_origins: ['https://*.example']\n", "http://127.0.0.1:*, https://c.example", []string{"http://127.0.0.1:*", "https://c.example"}, ""},
		{"cors_origins: [a.example]\n", "", nil, `FILE:1: cors_origins: "a.example" is not SCHEME://HOST`},
		{"cors_origins: ['https://a.example/']\n", "", nil, `"https://a.example/" is not`},
		{"cors_origins: ['https://*.*.example']\n", "", nil, `"https://*.*.example" is not`},
		{"cors_origins: {a: b}\n", "", nil, "this must be a list such as [a, b]"},
		{"cors_origins: [[a]]\n", "", nil, "this must be a list such as [a, b]"},
		{"", "nope", nil, `"nope" is not`},
	}
	for _, tt := range tests {
		file := filepath.Join(t.TempDir(), "leaf.yaml")
		if err := os.WriteFile(file, []byte(tt.file), 0o600); err != nil {
			t.Fatal(err)
		}
		var env []string
		if tt.env != "" {
			env = []string{"LEAF_CORS_ORIGINS=" + tt.env}
		}
		cfg, _, err := config.Load(config.Source{File: file, Environ: env})
		switch {
		case tt.problem == "" && err != nil, tt.problem != "" && err == nil:
			t.Errorf("%q %q: %v, want %q", tt.file, tt.env, err, tt.problem)
		case err != nil:
			if text := strings.ReplaceAll(err.Error(), file, "FILE"); !strings.Contains(text, tt.problem) {
				t.Errorf("%q %q: %s, want %q", tt.file, tt.env, text, tt.problem)
			}
		default:
			if diff := cmp.Diff(tt.want, cfg.CORSOrigins); diff != "" {
				t.Errorf("%q %q: %s", tt.file, tt.env, diff)
			}
		}
	}
}
