package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/config"
)

// Keys of masks come from files and variables, and no problem shows one.
func TestMaskKeys(t *testing.T) {
	secret := strings.Repeat("0123456789abcdef", 4)
	file := filepath.Join(t.TempDir(), "k1")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(keys string) (config.Config, error) {
		cfg, _, err := config.Load(config.Source{Environ: []string{"LEAF_SEGMENT_MASK_KEYS=" + keys, "MASK_2=" + secret, "SHORT=" + secret[:60]}})
		return cfg, err
	}
	cfg, err := load("{k1: " + file + ", k2: env:MASK_2}")
	if err != nil || len(cfg.Segment.Keys) != 2 || cfg.Segment.Keys["k1"] != cfg.Segment.Keys["k2"] {
		t.Fatalf("got %v, %v", cfg.Segment.Keys, err)
	}
	for keys, want := range map[string]string{
		"{k1: env:NONE}": "64 hexadecimal digits", "{k1: env:SHORT}": "64 hexadecimal digits", "{k1: /none/k1}": "no such file",
		"{a b: " + file + "}": "no name of a key", "k1": "is not a list such as",
	} {
		if _, err := load(keys); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret[:8]) {
			t.Errorf("%s: %v, want %s", keys, err, want)
		}
	}
}
