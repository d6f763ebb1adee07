package respapi_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf/driver/drivertest"
)

// go-redis takes IDs as from a Redis, by both versions of the protocol, one by one and in
// pipelines.
func TestGoRedis(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		f := serve(t, nil)
		c := redis.NewClient(&redis.Options{Addr: f.addr, Protocol: protocol, ClientName: "test"})
		if err := c.SetNX(t.Context(), "order", 0, 0).Err(); err != nil {
			t.Error(err)
		}
		var seen drivertest.IDs
		var wg sync.WaitGroup
		for range 4 {
			shard := seen.Shard()
			wg.Go(func() {
				for range 50 {
					id, err := c.Incr(t.Context(), "order").Result()
					if err != nil {
						t.Error(err)
						return
					}
					shard.Add(id)
				}
				last, err := c.IncrBy(t.Context(), "order", 2).Result()
				if err != nil {
					t.Error(err)
				}
				shard.Add(last-1, last)
				replies, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for range 100 {
						p.Incr(t.Context(), "order")
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				for _, r := range replies {
					shard.Add(r.(*redis.IntCmd).Val())
				}
			})
		}
		wg.Wait()
		if err := seen.Check(); err != nil {
			t.Error(err)
		}
		if id, err := c.Do(t.Context(), "LEAF.NEXT", "uuid", "v7").Text(); err != nil || len(id) != 36 {
			t.Errorf("LEAF.NEXT: %q, %v", id, err)
		}
		if ids, err := c.Do(t.Context(), "LEAF.NEXT", "segment", "order", "COUNT", 5).StringSlice(); err != nil || len(ids) != 5 {
			t.Errorf("LEAF.NEXT: %q, %v", ids, err)
		}
		if err := c.Incr(t.Context(), "nothing").Err(); err == nil || !strings.HasPrefix(err.Error(), "ERR ") {
			t.Errorf("INCR of an unknown tag: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// tool runs one of Redis's own tools on the server and returns its output.
func (f *fixture) tool(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(f.addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], append([]string{"-h", host, "-p", port}, args[1:]...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%q: %v\n%s%s", args, err, out, exit.Stderr)
	} else if err != nil {
		t.Fatalf("%q: %v (in Debian's package redis-tools)", args, err)
	}
	return string(out)
}

func TestRedisCLI(t *testing.T) {
	for _, version := range []string{"-2", "-3"} {
		f := serve(t, nil)
		for i, command := range [][]string{{"INCR", "order"}, {"incrby", "order", "9"}, {"LEAF.NEXT", "segment", "order"}} {
			want := []string{"1\n", "10\n", "11\n"}[i]
			if got := f.tool(t, "", append([]string{"redis-cli", version}, command...)...); got != want {
				t.Errorf("redis-cli %s %s: %q, want %q", version, command, got, want)
			}
		}
		const session = "INCR order\nINFO server\nCLIENT INFO\nCOMMAND DOCS incr\nLEAF.NEXT segment order COUNT 2\nGET order\n"
		got := f.tool(t, session, "redis-cli", version)
		for _, want := range []string{"12\n", "redis_version:", "lib-name=", "Takes the next ID of a tag.", "13\n14\n", "ERR a counter is not read here"} {
			if !strings.Contains(got, want) {
				t.Errorf("redis-cli %s: no %q in\n%s", version, want, got)
			}
		}
		pipe := f.tool(t, strings.Repeat(command("INCR", "order"), 10_000), "redis-cli", version, "--pipe")
		if !strings.Contains(pipe, "errors: 0, replies: 10000") {
			t.Errorf("redis-cli %s --pipe:\n%s", version, pipe)
		}
	}
}

// redis-benchmark ends with as many IDs taken as it has asked for.
func TestRedisBenchmark(t *testing.T) {
	for _, version := range []string{"", "-3"} {
		f := serve(t, nil)
		taken := int64(0)
		for _, pipeline := range []int{1, 16, 64} {
			args := strings.Fields(fmt.Sprintf("redis-benchmark %s -q -c 8 -n 6400 -P %d INCR order", version, pipeline))
			if got := f.tool(t, "", args...); !strings.Contains(got, "requests per second") || strings.Contains(got, "WARN") {
				t.Errorf("%q: %s", args, got)
			}
			taken += 6400
		}
		c := f.dial(t)
		c.send(command("INCR", "order"))
		if got := c.number(); got < taken+1 { // it may send a little more than requested
			t.Errorf("after %d INCR: %d", taken, got)
		}
	}
}
