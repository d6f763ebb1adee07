package config_test

import (
	"testing"

	"github.com/leaf-id/leaf/internal/config"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]config.Size{"16MiB": 16 << 20, "1048576KiB": 1 << 30, "3 GiB": 3 << 30, "8GiB": 8 << 30} {
		if got := load(t, config.Source{Environ: []string{"LEAF_CLUSTER_QUOTA=" + text}}).ClusterQuota; got != want {
			t.Errorf("%s is %d bytes, want %d", text, got, want)
		}
	}
	for _, text := range []string{"", "2", "2GB", "-1GiB", "1.5GiB", "15MiB", "9GiB", "9999999999999GiB", "GiB"} {
		if cfg, _, err := config.Load(config.Source{Environ: []string{"LEAF_CLUSTER_QUOTA=" + text}}); err == nil && text != "" {
			t.Errorf("%q is %d bytes", text, cfg.ClusterQuota)
		}
	}
	for size, want := range map[config.Size]string{2 << 30: "2GiB", 1<<30 + 1<<20: "1025MiB", 1000: "1000 bytes"} {
		if got := size.String(); got != want {
			t.Errorf("%d bytes are %q, want %q", size, got, want)
		}
	}
}
