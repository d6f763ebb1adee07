package server

import (
	"strings"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// openTraces begins to trace, if enabled. It only logs ineffective settings of the environment,
// which is often for all programs of a machine.
func (s *Server) openTraces() {
	var err error
	if s.traces, err = telemetry.OpenTraces(s.cfg.Traces, s.opts.Version, s.log); err != nil {
		s.log.Warn("requests are not traced", "err", err)
	}
}

// kindOf is what b is, such as postgres.
func kindOf(b *backend.Backend) string {
	kind, _, _ := strings.Cut(b.Name, ":")
	return kind
}
