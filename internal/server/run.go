package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf"
)

// errStopping is the error of requests that still wait when the server stops.
var errStopping = fmt.Errorf("the server is stopping: %w", leaf.ErrClosed)

// longestWait returns the longest wait of a request for its answer.
func (s *Server) longestWait() time.Duration {
	return max(s.cfg.Segment.Wait+s.cfg.Segment.CallTimeout, s.cfg.Snowflake.Wait, s.cfg.UID.Wait)
}

// Run serves until ctx ends and then stops. From then on the server is not ready. After the drain
// delay, and within the shutdown timeout, it accepts no connections, lets requests finish, gives
// the rest of its IDs back to the store and the worker ID to its registry, and closes both. It
// returns nil after an orderly stop, and why a member of a cluster in this process has ended if that
// ends the server.
func (s *Server) Run(ctx context.Context) error {
	release := s.startNode()
	if err := s.open(ctx); err != nil {
		return errors.Join(err, s.stop(release))
	}
	if ctx.Err() != nil { // told to stop before it ever served
		s.opts.Notify.Stopping()
		return s.stop(release)
	}
	s.log.Info("serving", s.about()...)
	s.opts.Notify.Ready(s.statusText(s.health()))
	s.serving.Store(true)
	unwatch := s.watch()
	served := make(chan error, len(s.ports))
	for _, p := range s.ports {
		if p.listener != nil {
			go func() { served <- p.protocol.Serve(p.listener) }()
		}
	}
	var reason error
	select {
	case <-ctx.Done():
	case reason = <-s.ended:
		s.log.Error("this server ends, so that its supervisor starts it again", "err", reason)
	case err := <-served:
		unwatch()
		return errors.Join(fmt.Errorf("serve: %w", err), s.stop(release))
	}
	s.serving.Store(false)
	s.opts.Notify.Stopping()
	s.stopping.Store(true)
	time.Sleep(s.current.Load().DrainDelay)
	unwatch()
	return errors.Join(reason, s.stop(release))
}

// open opens the ports when all schemes are ready, or after start_wait; not if ctx ends first.
func (s *Server) open(ctx context.Context) error {
	if s.cfg.StartWait == 0 {
		return nil
	}
	s.log.Info("the port opens when all schemes are ready", "address", s.main().String(), "start_wait", s.cfg.StartWait)
	limit := time.NewTimer(s.cfg.StartWait)
	defer limit.Stop()
	look := time.NewTicker(readyInterval)
	defer look.Stop()
	for wait := true; wait && s.ready() != nil; {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		case <-limit.C:
			wait = false
			s.log.Warn("start_wait is over: the port opens although this server is not ready", "err", s.ready())
		}
	}
	for _, p := range s.ports {
		if err := p.listen(p.String()); err != nil && !s.servesWithout(p, err) {
			return err
		}
	}
	return nil
}

// readyInterval is how often open looks whether the server is ready.
const readyInterval = 20 * time.Millisecond

// about returns the attributes of the log's first line.
func (s *Server) about() []any {
	schemes := slices.Sorted(maps.Keys(s.sources()))
	var about []any
	for i, p := range s.ports {
		switch {
		case p.listener == nil:
		case i == 0:
			about = append(about, "url", s.urlOf(p), "protocols", p.Title, "scheme", strings.Join(schemes, ", "))
		default:
			about = append(about, p.Key, p.String())
		}
	}
	if s.set != nil {
		about = append(about, "store", s.opts.Store.Name)
	}
	if s.times != nil {
		about = append(about, "workers", s.times.backend.Name)
	}
	return append(about, "version", s.opts.Version)
}

// stop ends serving within the shutdown timeout; release hands the worker ID back. What
// is not done by then is left: it costs IDs, and nothing else.
func (s *Server) stop(release func(context.Context)) error {
	start := time.Now()
	ended := make(chan error, 1)
	go func() { ended <- s.end(release) }()
	select {
	case err := <-ended:
		s.log.Info("stopped", "took", time.Since(start).Round(time.Millisecond))
		return err
	case <-time.After(s.cfg.ShutdownTimeout):
		s.log.Warn("stopped before all was given back or closed, which took too long", "shutdown_timeout", s.cfg.ShutdownTimeout)
		return nil
	}
}

// end executes the steps of a stop in order.
func (s *Server) end(release func(context.Context)) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownTimeout*9/10)
	defer cancel()
	s.drain()
	var released sync.WaitGroup
	released.Go(func() { release(ctx) })
	if s.set != nil {
		if err := s.set.Close(ctx); err != nil { // with other servers on the store most stops end so
			s.log.Info("unused IDs were not taken back and are lost", "store", s.opts.Store.Name, "err", err)
		}
	}
	released.Wait()
	s.watchers.Wait()
	return s.close()
}

// drain closes the listener and lets requests finish for half of the shutdown timeout. Requests
// that then still wait for the store get an error, and drain cuts the remaining connections. The
// rest of the time is for giving back and closing.
func (s *Server) drain() {
	defer s.cancel(errStopping)
	if s.shutdown(s.cfg.ShutdownTimeout/2) == nil {
		return
	}
	s.cancel(errStopping)
	if s.shutdown(s.cfg.ShutdownTimeout/10) == nil {
		return
	}
	s.log.Warn("requests cut off", "after", s.cfg.ShutdownTimeout*6/10)
	for _, p := range s.ports {
		p.protocol.Close()
	}
}

// shutdown ends all front ends at the same time.
func (s *Server) shutdown(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	s.announce()
	var all errgroup.Group
	for _, p := range s.ports {
		all.Go(func() error { return p.protocol.Shutdown(ctx) })
	}
	return all.Wait()
}
