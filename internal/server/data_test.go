package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/server"
)

// Without a memory of the counters a server still keeps its worker ID, and its log does not say
// otherwise.
func TestUnusableData(t *testing.T) {
	for text, worker := range map[string]bool{"no data directory": true, "no memory of the counters": false} {
		r := run(t, nil, func(o *server.Options) {
			if err := os.Mkdir(filepath.Join(o.Config.Data, "counters.lock"), 0o700); err != nil {
				t.Fatal(err)
			}
			if worker {
				o.Config.Data = "/dev/null"
			}
		})
		if log := r.log.String(); !strings.Contains(log, text) || strings.Contains(log, "every start takes another worker ID") != worker {
			t.Errorf("the log lacks %s:\n%s", text, log)
		}
	}
}
