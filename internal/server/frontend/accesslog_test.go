package frontend_test

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

// Whoever reads the access log can neither renew nor release a lease.
func TestAccessLogHasNoSecrets(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/workers/leases":                    "path=/v1/workers/leases ",
		"/v1/workers/leases/1z-5ec2e7?used=1":   "path=/v1/workers/leases/{lease} ",
		"/v1/workers/leases/%31z-5ec2e7?used=1": "path=/v1/workers/leases/{lease} ",
	} {
		var log strings.Builder
		l := frontend.NewAccessLog(slog.New(slog.NewTextHandler(&log, nil)), 1)
		l.Log(httptest.NewRequest("DELETE", path, nil), "shop", 204, time.Now())
		if !strings.Contains(log.String(), want) || strings.Contains(log.String(), "5ec2e7") {
			t.Errorf("%s is logged as %s", path, &log)
		}
	}
}
