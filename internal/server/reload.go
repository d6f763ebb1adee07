package server

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leaf-id/leaf/internal/config"
)

// Reload applies changes of the configuration, the tokens file and the certificates that a running
// server can apply, and logs the others. After an error, which it also logs, everything stays as it
// was.
func (s *Server) Reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.serving.Load() { // otherwise it is not ready
		s.opts.Notify.Reloading()
		defer func() { s.opts.Notify.Ready(s.statusText(s.health())) }() // after an error too: it serves on
	}
	s.failed = s.reload()
	if s.failed != nil {
		s.logFailure()
	}
	return s.failed
}

// retryReload repeats a failed reload: its cause may go without a change of a file, such as a wrong
// mode. It logs an error once.
func (s *Server) retryReload() {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if s.failed == nil {
		return
	}
	before := s.failed
	s.failed = s.reload()
	if s.failed != nil && s.failed.Error() != before.Error() {
		s.logFailure()
	}
}

func (s *Server) logFailure() {
	s.log.Error("the configuration was not read again; the old one stays in force", "err", s.failed)
}

func (s *Server) reload() error {
	next := s.opts.Config
	if s.opts.Load != nil {
		var err error
		if next, err = s.opts.Load(); err != nil {
			return err
		}
	}
	before := *s.current.Load()
	_, fixed := config.Changed(s.opts.Config, next)
	if (next.TLS.Cert == "") != (s.tls == nil) {
		next.TLS, fixed = before.TLS, append(fixed, "tls.cert")
	}
	if err := s.staysClosed(before, next); err != nil {
		return err
	}
	commit, err := s.prepare(next)
	if err != nil {
		return fmt.Errorf("read the configuration again: %w", err)
	}
	commit()
	live, _ := config.Changed(before, next)
	about := []any{"changed", strings.Join(live, ", "), "tokens", s.gate.Tokens()}
	if s.tls != nil {
		about = append(about, "certificate_until", s.tls.expiry())
	}
	s.log.Info("the configuration was read again", about...)
	if len(fixed) > 0 {
		s.log.Warn("keys of the configuration have changed that need a restart; they stay as they were", "keys", strings.Join(fixed, ", "))
	}
	return nil
}

// staysClosed refuses a configuration that would let in callers without credentials: its file may be
// emptied or half written.
func (s *Server) staysClosed(before, next config.Config) error {
	switch {
	case next.EmptyFile && !s.opts.Config.EmptyFile:
		return errors.New("the configuration file had keys at the start and has none now: write them again")
	case before.TokensFile != "" && next.TokensFile == "":
		return errors.New("tokens_file was set and is empty now, which would let everyone in: set it again, or restart the server")
	case before.TLS.ClientCA != "" && next.TLS.ClientCA == "":
		return errors.New("tls.client_ca was set and is empty now, which would let in clients without a certificate: set it again, or restart the server")
	}
	return nil
}

// prepare reads what next names. The returned function puts all of it in force.
func (s *Server) prepare(next config.Config) (commit func(), err error) {
	gate, err := s.gate.Prepare(next.PublicRead, next.Limits, next.TokensFile)
	if err != nil {
		return nil, err
	}
	certificates := func() {}
	if s.tls != nil {
		if certificates, err = s.tls.prepare(next.TLS); err != nil {
			return nil, err
		}
	}
	return func() {
		gate()
		certificates()
		for _, p := range s.ports {
			if r, ok := p.protocol.(interface{ Reload(config.Config) }); ok { // not before the front ends are made
				r.Reload(next)
			}
		}
		if s.access != nil {
			s.access.SetEvery(next.Log.Access)
		}
		if s.opts.Level != nil {
			s.opts.Level.Set(next.LogLevel())
		}
		now := s.cfg.WithLive(next)
		s.current.Store(&now)
	}, nil
}

// files lists the files that a change reloads.
func (s *Server) files() []string {
	c := s.current.Load()
	var files []string
	for _, file := range []string{s.opts.ConfigFile, c.TokensFile, c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA} {
		if file != "" {
			files = append(files, file)
		}
	}
	return files
}
