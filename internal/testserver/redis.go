package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RedisOptions are the optional settings of a Redis; nil means all defaults.
type RedisOptions struct {
	// Config holds further settings, as in {"appendfsync", "everysec"}. Without any
	// each write is on disk before it is acknowledged.
	Config [][2]string
}

// A RedisServer is a private Redis on 127.0.0.1. Its methods are not safe for
// concurrent use, except for Addr, URL and Do.
type RedisServer struct {
	Port int
	Dir  string // holds the data

	program string
	config  [][2]string
	proc    *process
	started bool
}

// Redis starts a server that ends with t.
func Redis(t TB, opts *RedisOptions) *RedisServer {
	t.Helper()
	s, err := StartRedis(opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// StartRedis starts a server that ends with [RedisServer.Close].
func StartRedis(opts *RedisOptions) (*RedisServer, error) {
	config := [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"save", ""}}
	if opts != nil {
		config = append(config, opts.Config...)
	}
	return startRedis("redis-server", config)
}

func startRedis(program string, config [][2]string) (*RedisServer, error) {
	dir, err := os.MkdirTemp("", "leafredis")
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	s := &RedisServer{Dir: dir, program: program, config: config}
	if err := s.Start(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Addr is the server's address, as clients take it.
func (s *RedisServer) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// URL is the server's address as Leaf takes it.
func (s *RedisServer) URL() string { return "redis://" + s.Addr() }

// PID is the server's process.
func (s *RedisServer) PID() int { return s.proc.cmd.Process.Pid }

// Start starts the server after [RedisServer.Stop] or [RedisServer.Kill], on the same
// port and data, and returns when it answers.
func (s *RedisServer) Start() error {
	return startOn(&s.Port, &s.started, s.run, s.Kill)
}

func (s *RedisServer) run() error {
	path, err := exec.LookPath(s.program)
	if err != nil {
		return fmt.Errorf("%w: install redis-server and redis-sentinel (make test does it on Debian as root)", err)
	}
	if !s.started { // later it is the server's own: a sentinel keeps its state there
		if err := s.configure(); err != nil {
			return fmt.Errorf("start redis: %w", err)
		}
	}
	if s.proc, err = start(exec.Command(path, s.configPath())); err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	return s.await("start redis", func() error {
		_, err := s.Do("PING")
		if err != nil && strings.HasPrefix(err.Error(), "NOAUTH") {
			return nil // it wants a password, and so it serves
		}
		return err
	})
}

func (s *RedisServer) configPath() string { return filepath.Join(s.Dir, "redis.conf") }

func (s *RedisServer) configure() error {
	var b strings.Builder
	for _, c := range append([][2]string{{"bind", "127.0.0.1"}, {"port", strconv.Itoa(s.Port)}, {"dir", s.Dir}}, s.config...) {
		if c[1] == "" {
			c[1] = `""`
		}
		fmt.Fprintf(&b, "%s %s\n", c[0], c[1])
	}
	return os.WriteFile(s.configPath(), []byte(b.String()), 0o600)
}

// await polls until ready returns nil.
func (s *RedisServer) await(what string, ready func() error) error {
	deadline := time.After(startTimeout)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("%s: it ended\n%s", what, s.proc.out.tail())
		case <-deadline:
			return fmt.Errorf("%s: %w\n%s", what, err, s.proc.out.tail())
		case <-poll.C:
		}
	}
}

// AwaitInfo waits until a section of INFO holds all of texts.
func (s *RedisServer) AwaitInfo(section string, texts ...string) error {
	return s.await("wait for "+strings.Join(texts, " "), func() error {
		info, err := s.Do("INFO", section)
		for _, text := range texts {
			if err == nil && !strings.Contains(info, text) {
				err = errors.New(info)
			}
		}
		return err
	})
}

// insist repeats a harmless command until the server takes it: a busy disk holds up a server that
// syncs each write.
func (s *RedisServer) insist(args ...string) error {
	return s.await(strings.Join(args, " "), func() error {
		_, err := s.Do(args...)
		return err
	})
}

// Stop ends the server in good order and waits for its end.
func (s *RedisServer) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the server at once, as kill -9 does, and waits for its end.
func (s *RedisServer) Kill() error { return s.end(syscall.SIGKILL) }

// Pause freezes the server: connections stand, nothing answers.
func (s *RedisServer) Pause() error {
	if err := s.proc.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return s.await("pause redis", func() error {
		if frozen(s.proc.cmd.Process.Pid) {
			return nil
		}
		return errors.New("it did not stop")
	})
}

// Resume ends [RedisServer.Pause].
func (s *RedisServer) Resume() error { return s.proc.signal(syscall.SIGCONT) }

func (s *RedisServer) end(sig syscall.Signal) error {
	if s.proc == nil || s.proc.ended() {
		return nil
	}
	if err := s.proc.signal(sig); err != nil {
		return fmt.Errorf("stop redis: %w", err)
	}
	select {
	case <-s.proc.done:
		return nil
	case <-time.After(stopTimeout):
		return errors.New("stop redis: it did not end")
	}
}

// Close ends the server and deletes its data.
func (s *RedisServer) Close() {
	_ = s.Kill() // the data goes away as well: nothing to save
	_ = os.RemoveAll(s.Dir)
}

// Log returns the end of the server's log.
func (s *RedisServer) Log() string { return s.proc.out.tail() }
