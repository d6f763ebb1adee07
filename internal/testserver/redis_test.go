package testserver_test

import (
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

func redisDo(t *testing.T, s *testserver.RedisServer, args ...string) string {
	t.Helper()
	answer, err := s.Do(args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return answer
}

func TestRedisKeepsPortAndDataOverKillAndStop(t *testing.T) {
	s := testserver.Redis(t, nil)
	addr := s.Addr()
	redisDo(t, s, "SET", "k", "v")
	for name, end := range map[string]func() error{"kill": s.Kill, "stop": s.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Do("PING"); err == nil {
			t.Fatalf("after %s the server still answers", name)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if got := redisDo(t, s, "GET", "k"); s.Addr() != addr || got != "v" {
			t.Fatalf("after %s it is at %s and holds %q, want %s and v", name, s.Addr(), got, addr)
		}
	}
}

func TestRedisPause(t *testing.T) {
	s := testserver.Redis(t, nil)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Do("PING"); err == nil {
		t.Error("a paused server answered")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	redisDo(t, s, "PING")
}

// The replica takes over with the writes before it was cut off, and without the later ones. The
// former primary returns as its replica, once, and for good.
func TestRedisPairLosesWritesAfterBreak(t *testing.T) {
	p := testserver.RedisWithReplica(t, nil)
	redisDo(t, p.Primary, "SET", "before", "v")
	if err := p.Break(); err != nil {
		t.Fatal(err)
	}
	redisDo(t, p.Primary, "SET", "lost", "v")
	former, next := p.Primary, p.Replica
	if err := p.FailOver(); err != nil {
		t.Fatal(err)
	}
	redisDo(t, next, "SET", "after", "v")
	if err := p.Restore(); err != nil {
		t.Fatal(err)
	}
	if p.Primary != next || p.Replica != former || strings.Count(p.Sentinel.Log(), "+switch-master") != 1 {
		t.Errorf("%s was to replace %s for good:\n%s", next.Addr(), former.Addr(), p.Sentinel.Log())
	}
	for _, s := range []*testserver.RedisServer{former, next} {
		if got := redisDo(t, s, "MGET", "before", "lost", "after"); got != "v\n\nv" {
			t.Errorf("%s holds %q", s.Addr(), got)
		}
	}
}

func TestRedisClusterServes(t *testing.T) {
	c := testserver.RedisClusterOf3(t)
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, err := c.Do("SET", key, key); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Do("GET", key); got != key || err != nil {
			t.Errorf("key %s holds %q, %v", key, got, err)
		}
	}
}

func TestRedisLeavesNothing(t *testing.T) {
	s, err := testserver.StartRedis(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", s.Dir, err)
	}
}
