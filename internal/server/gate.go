package server

import (
	"cmp"
	"fmt"

	"github.com/leaf-id/leaf/internal/filewatch"
	"github.com/leaf-id/leaf/internal/server/access"
)

// openGate makes the gate and, where TLS is configured, reads the certificates.
func (s *Server) openGate() error {
	s.gate = access.New(access.Options{
		Local:  s.administeredLocally(),
		HasTag: func(tag string) bool { return s.set != nil && s.set.Server().Has(tag) },
		Logger: s.log,
	})
	if s.cfg.TLS.Cert != "" {
		s.tls = new(certificates)
	}
	s.current.Store(&s.cfg)
	s.opts.Files = cmp.Or(s.opts.Files, filewatch.New())
	s.opts.Files.Changed(s.files()...) // before they are read, so that no later change is lost
	commit, err := s.prepare(s.cfg)
	if err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	commit()
	return nil
}
