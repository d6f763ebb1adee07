package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
)

func TestUnknownVariablesAreNoticed(t *testing.T) {
	_, notices, err := config.Load(config.Source{Environ: []string{
		"LEAF_LISTNE=:80", "LEAF_SEGMENT_MAXSTOCK=5", "LEAF_QUUXFROBNICATE=1", "LEAF_PORT=9090",
		"LEAF_LISTEN=:80", "LEAF_SEGMENT_MAX_STOCK=5", "LEAF_CONFIG=" + write(t, "leaf.yaml", ""), "LEAF_SERVER=x", "LEAF_TOKEN=x", "LEAFLET=1", "LEAF_EMPTY=",
		"LEAF_SERVICE_HOST=10.0.0.1", "LEAF_SERVICE_PORT_HTTP=80", "LEAF_PORT_8080_TCP_ADDR=10.0.0.1", "LEAF_DB_SERVICE_HOST=10.0.0.2",
		"LEAF_DB_PORT=tcp://10.0.0.2:3306", "LEAF_DB_PORT_3306_TCP=tcp://10.0.0.2:3306",
	}})
	want := []string{
		"LEAF_LISTNE is not a setting and is ignored; did you mean LEAF_LISTEN?",
		"LEAF_PORT is not a setting and is ignored",
		"LEAF_QUUXFROBNICATE is not a setting and is ignored",
		"LEAF_SEGMENT_MAXSTOCK is not a setting and is ignored; did you mean LEAF_SEGMENT_MAX_STOCK?",
	}
	if diff := cmp.Diff(want, notices); diff != "" || err != nil {
		t.Errorf("error %v, notices (-want +got):\n%s", err, diff)
	}
}
