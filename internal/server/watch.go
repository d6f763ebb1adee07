package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/hint"
)

// How often the server looks at the files that may change, at its own health, and for hosts that
// were silent at the start.
const (
	filesInterval  = 2 * time.Second
	healthInterval = 5 * time.Second
	hostsInterval  = 5 * time.Second
)

// watch has the server read changed files again, and tell of its health, until the returned
// function is called. A stop waits for s.watchers, but not for a file: on a network drive without its
// server a look at one takes for ever.
func (s *Server) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go s.watchFiles(ctx)
	s.watchers.Go(func() { s.watchHealth(ctx) })
	s.watchers.Go(func() { every(ctx, healthInterval, s.watchMember) })
	if len(s.unheard) > 0 {
		s.watchers.Go(func() { every(ctx, hostsInterval, func() { s.compareLate(ctx) }) })
	}
	if w := s.opts.Notify.Watchdog(); w > 0 {
		s.watchers.Go(func() { every(ctx, w/2, s.pingWatchdog) })
	}
	return cancel
}

func (s *Server) watchFiles(ctx context.Context) {
	files := s.opts.Files
	every(ctx, cmp.Or(s.opts.filesInterval, filesInterval), func() {
		switch changed := files.Changed(s.files()...); {
		case len(changed) > 0:
			s.log.Info("files have changed", "files", strings.Join(changed, ", "))
			_ = s.Reload() // it has logged why not
		case files.Stable(): // no file may be half written
			s.retryReload()
		}
	})
}

// pingWatchdog tells systemd that the server is alive. It first takes the locks of all generators: a
// server with a hanging generator is not alive, one with an absent store is.
func (s *Server) pingWatchdog() {
	s.health()
	if s.set != nil {
		for range s.set.Server().Totals() {
			continue
		}
	}
	if s.times != nil {
		for _, l := range s.times.layouts {
			s.times.node.Generator(l.Name).Stats()
		}
	}
	s.opts.Notify.Alive()
}

// watchHealth logs when requests should go to other servers, and when they should no more, and
// what will stop the server one day.
func (s *Server) watchHealth(ctx context.Context) {
	var status string
	var readyBefore, told bool
	var ends map[string]bool
	every(ctx, healthInterval, func() {
		report := s.health()
		s.conditions.Store(new(conditionNames(report)))
		ends = s.logEnds(report, ends)
		if now := s.statusText(report); now != status {
			status = now
			s.opts.Notify.Status(status)
		}
		switch err := report.Err(""); {
		case err == nil && told:
			s.log.Info("ready again")
			told = false
		case err != nil && readyBefore && !told && !s.stopping.Load():
			s.log.Warn("not ready: requests should go to other servers", "err", err)
			told = true
		case err == nil:
			readyBefore = true
		}
	})
}

// watchMember ends the server if its member of a cluster has ended, and a restart brings that back, or
// the server can issue no more IDs without it. With a full disk, or as a removed member, it would not
// start again.
func (s *Server) watchMember() {
	for _, b := range []*backend.Backend{s.opts.Store, s.opts.Workers} {
		restart, err := b.MemberFailure()
		if err == nil || !restart && (errors.Is(err, hint.ErrDiskFull) || errors.Is(err, hint.ErrRemoved) || s.ready() == nil) {
			continue
		}
		select {
		case s.ended <- fmt.Errorf("%w, and comes back only by a restart", err):
		default: // it ends already
		}
	}
}

// certificateNotice is how long before its end a certificate is worth a line in the log.
const certificateNotice = 14 * 24 * time.Hour

// logEnds logs new reasons that will stop the server one day, and returns all of them.
func (s *Server) logEnds(report health.Report, known map[string]bool) (now map[string]bool) {
	now = make(map[string]bool)
	tell := func(text, advice string) {
		if now[text] = true; !known[text] {
			s.log.Warn(text, "hint", advice)
		}
	}
	for _, c := range report.Conditions {
		if c.Name == health.LayoutEnding || c.Name == health.WorkerIDsLow {
			tell(c.Err.Error(), hint.ForCondition(c))
		}
	}
	if s.tls == nil {
		return now
	}
	if end := s.tls.expiry(); time.Until(end) < certificateNotice {
		tell("the certificate is valid until "+end.UTC().Format(time.RFC3339), "renew it: the files are read again when they change")
	}
	return now
}

// statusText is the health in a line.
func (s *Server) statusText(report health.Report) string {
	if err := report.Err(""); err != nil {
		return "not ready: " + err.Error()
	}
	for _, c := range report.Conditions {
		if !c.Optional {
			return "degraded: " + c.Err.Error()
		}
	}
	return "ready on " + s.main().String()
}

// every calls do at once and at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil { // a tick may have come with the end
		do()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
