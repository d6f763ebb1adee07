package config_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
)

func TestChanged(t *testing.T) {
	old, now := config.Default(), config.Default()
	if live, fixed := config.Changed(old, now); live != nil || fixed != nil {
		t.Errorf("nothing has changed: %v, %v", live, fixed)
	}
	now.Listen, now.Segment.Wait = ":1", time.Hour
	now.CORSOrigins, now.Log.Level, now.Limits.Client.Rate = []string{"*"}, "debug", 7
	now.Limits.Tags = config.TagLimits{"a": {Rate: 1}}
	live, fixed := config.Changed(old, now)
	if diff := cmp.Diff([]string{"cors_origins", "limits.client.rate", "limits.tags", "log.level"}, live); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"listen", "segment.wait"}, fixed); diff != "" {
		t.Error(diff)
	}
	mixed := old.WithLive(now)
	if mixed.Listen != old.Listen || mixed.Log.Level != "debug" || mixed.Limits.Client.Rate != 7 || old.Log.Level != "info" {
		t.Errorf("%+v", mixed)
	}
}
