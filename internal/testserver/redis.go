package testserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
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
	private

	program string
	config  [][2]string
}

// Redis starts a server that ends with t.
func Redis(t TB, opts *RedisOptions) *RedisServer {
	t.Helper()
	s, err := StartRedis(opts)
	return until(t, s, err)
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
	s := &RedisServer{program: program, config: config}
	return privately(s, &s.private, "leafredis")
}

// URL is the server's address as Leaf takes it.
func (s *RedisServer) URL() string { return "redis://" + s.Addr() }

// Start starts the server after Stop or Kill, on the same
// port and data, and returns when it answers.
func (s *RedisServer) Start() error {
	return s.startOn(s.run)
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
	return s.proc.await("start redis", func() error {
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

// AwaitInfo waits until a section of INFO holds all of texts.
func (s *RedisServer) AwaitInfo(section string, texts ...string) error {
	return s.proc.await("wait for "+strings.Join(texts, " "), func() error {
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
	return s.proc.await(strings.Join(args, " "), func() error {
		_, err := s.Do(args...)
		return err
	})
}
