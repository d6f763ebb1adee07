package telemetry_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/worker"
)

// A goneClient reads nothing.
type goneClient struct{ http.ResponseWriter }

func (goneClient) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A scraper that gives up, as each does on a machine with too much to do, costs a line a minute
// and not one for each metric.
func TestScraperThatGivesUp(t *testing.T) {
	var log bytes.Buffer
	h := telemetry.NewHandler(telemetry.NewCollector(telemetry.Sources{
		Health: func() health.Report { return health.Report{} },
	}), slog.New(slog.NewTextHandler(&log, nil)))
	for range 10 {
		h.ServeHTTP(goneClient{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "broken pipe") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
}

// A default scheme without its registry has no figures: no alert on them could clear.
func TestOptionalSchemeHasNoFigures(t *testing.T) {
	for _, optional := range []bool{true, false} {
		h := telemetry.NewHandler(telemetry.NewCollector(telemetry.Sources{
			Schemes: []string{"segment", "snowflake"},
			Worker:  func() worker.Status { return worker.Status{} },
			Health: func() health.Report {
				return health.Judge(health.Facts{Lease: &health.LeaseFacts{Schemes: []string{"snowflake"}, Err: worker.ErrNotCreated, Optional: optional}})
			},
		}), slog.New(slog.DiscardHandler))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
		for _, series := range []string{"leaf_worker_held 0", `leaf_ready{scheme="snowflake"} 0`, `leaf_condition{condition="no_worker_id"} 1`} {
			if strings.Contains(w.Body.String(), series) == optional {
				t.Errorf("optional %v: %s", optional, series)
			}
		}
	}
}
