package config_test

import (
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/config"
)

func TestTraces(t *testing.T) {
	for _, ok := range []string{"off", "http://collector:4318", "https://collector/otlp/v1/traces"} {
		if got := load(t, config.Source{Environ: []string{"LEAF_TRACES=" + ok}}).Traces; got != ok {
			t.Errorf("%q was read as %q", ok, got)
		}
	}
	for text, want := range map[string]string{
		"collector:4318":           "neither a URL",
		"grpc://collector:4317":    "neither a URL",
		"http://":                  "neither a URL",
		"http://c/?token=hunter2":  "neither a URL",
		"http://u:hunter2@c:4318":  "OTEL_EXPORTER_OTLP_HEADERS",
		"http://hunter2@[bad:4318": "neither a URL",
	} {
		_, _, err := config.Load(config.Source{Environ: []string{"LEAF_TRACES=" + text}, Java: javaURLs})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
