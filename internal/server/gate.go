package server

import (
	"fmt"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// openGate makes the gate and, where TLS is configured, reads the certificates.
func (s *Server) openGate() (err error) {
	s.gate = access.New(access.Options{
		Local:      frontend.IsLoopback(s.Addr()),
		PublicRead: s.cfg.PublicRead,
		Limits:     access.Limits{Client: access.Limit(s.cfg.Limits.Client), Tags: tagLimits(s.cfg.Limits.Tags)},
		Logger:     s.log,
	})
	if s.cfg.TokensFile != "" {
		if err := s.gate.Reload(s.cfg.TokensFile); err != nil {
			return fmt.Errorf("start server: %w", err)
		}
	}
	if s.cfg.TLS.Cert != "" {
		s.tls, err = newCertificates(s.cfg.TLS, s.log)
	}
	return err
}

func tagLimits(limits config.TagLimits) map[string]access.Limit {
	converted := make(map[string]access.Limit)
	for pattern, limit := range limits {
		converted[pattern] = access.Limit(limit)
	}
	return converted
}

// Reload reads again what may change while the server runs: the tokens file. After an error,
// which is logged too, what was in force stays.
func (s *Server) Reload() error {
	if s.cfg.TokensFile == "" {
		s.log.Warn("nothing was read again: there is no tokens file, and all else needs a restart")
		return nil
	}
	if err := s.gate.Reload(s.cfg.TokensFile); err != nil {
		s.log.Error("the tokens file was not read again; the tokens known before stay", "err", err)
		return err
	}
	s.log.Info("the tokens file was read again", "tokens", s.gate.Tokens())
	return nil
}
