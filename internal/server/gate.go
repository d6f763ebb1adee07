package server

import (
	"fmt"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// openGate makes the gate and, where TLS is configured, reads the certificates.
func (s *Server) openGate() error {
	s.gate = access.New(access.Options{Local: frontend.IsLoopback(s.Addr()), Logger: s.log})
	if s.cfg.TLS.Cert != "" {
		s.tls = new(certificates)
	}
	commit, err := s.prepare(s.cfg)
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	commit()
	return nil
}

func limits(c config.Limits) access.Limits {
	return access.Limits{Client: access.Limit(c.Client), Tags: tagLimits(c.Tags)}
}

func tagLimits(limits config.TagLimits) map[string]access.Limit {
	converted := make(map[string]access.Limit)
	for pattern, limit := range limits {
		converted[pattern] = access.Limit(limit)
	}
	return converted
}
