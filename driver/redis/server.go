package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// lookEvery is how long it takes at most to notice that a server's settings changed.
const lookEvery = time.Minute

// facts are the properties of a server at the last check.
type facts struct {
	replid   string
	timeline string // the value of [segment.Grant].Server: replid, or in a cluster the name in the key
	at       time.Time

	primaries map[string]bool // of a cluster: by master_replid, seen before the keys were found on this server

	// keeps: acknowledged writes are on this server's disk. A restart or takeover always changes
	// the replid.
	keeps bool
	// alone: no replica can take over, nor has this server taken over from another.
	alone bool
}

// lossless reports whether the server, with its present replicas, cannot lose an acknowledged
// write.
func (f *facts) lossless() bool { return f.keeps && f.alone }

// known returns the facts of the last check, if it is recent.
func (c *client) known(ctx context.Context, conns *conns, node *goredis.Client) (*facts, error) {
	if f := c.facts.Load(); f != nil && time.Since(f.at) < lookEvery {
		return f, nil
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	if f := c.facts.Load(); f != nil && time.Since(f.at) < lookEvery {
		return f, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := c.readFacts(ctx, conns, node)
	if err == nil {
		c.facts.Store(f)
	}
	return f, err
}

// readFacts reads the properties of the server, and fails if the driver must not use it. The caller
// holds c.reading.
func (c *client) readFacts(ctx context.Context, conns *conns, node *goredis.Client) (*facts, error) {
	f := &facts{at: time.Now()}
	if c.config.Mode == Cluster {
		f.primaries = conns.primaries(ctx)
	}
	s, err := askServer(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := s.unfit(c.config); err != nil {
		return nil, c.locate(err)
	}
	f.replid, f.keeps, f.alone = s.info["master_replid"], s.keeps(), c.config.Mode == Single && s.alone()
	f.timeline = f.replid
	if c.config.Mode == Cluster {
		if f.timeline, err = c.timeline(ctx, conns, node, f); err != nil {
			return nil, err
		}
		c.seen = f
	}
	if text, level := s.durability(); text != c.said {
		c.said = text
		c.logger.Log(ctx, level, "redis: "+text, "version", s.info["redis_version"], "server", strings.Join(c.config.Addrs, ","))
	}
	return f, nil
}

// A server is a server's description of itself.
type server struct {
	info   map[string]string
	config map[string]string // nil if the user may not ask
}

func askServer(ctx context.Context, node *goredis.Client) (server, error) {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return server{}, err
	}
	s := server{info: parseInfo(text)}
	s.config, err = node.ConfigGet(ctx, "*appendfsync*").Result()
	if _, refused := errors.AsType[goredis.Error](err); refused {
		s.config, err = nil, nil
	}
	return s, err
}

func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// unfit reports why the server must not be used.
func (s server) unfit(c Config) error {
	version, policy := s.info["redis_version"], s.info["maxmemory_policy"]
	switch {
	case s.info["redis_mode"] == "sentinel":
		return errors.New("this is a sentinel: write redis+sentinel://host:26379/MASTER")
	case s.info["role"] == "slave" && c.Mode != Sentinel: // with it, the script says so
		return fmt.Errorf("this is a replica: name its primary, %s:%s, in the URL, or the sentinels (redis+sentinel://)",
			s.info["master_host"], s.info["master_port"])
	case s.info["master_replid"] == "":
		return errors.New("the server does not tell its master_replid: it is not a Redis that Leaf can use")
	case olderThan(version, 6, 0):
		return fmt.Errorf("the server is Redis %s: Leaf needs 6.0 or newer", version)
	case c.WaitLocal+c.WaitReplicas > 0 && olderThan(version, 7, 2):
		return fmt.Errorf("the server is Redis %s: waitaof needs 7.2 or newer", version)
	case s.info["cluster_enabled"] == "1" && c.Mode != Cluster:
		return errors.New("the server is a node of a cluster: write redis+cluster://")
	case s.info["maxmemory"] != "0" && policy != "noeviction":
		return fmt.Errorf("maxmemory-policy is %s: the server may drop counters when its memory is full; set it to noeviction", policy)
	case s.info["aof_enabled"] != "1" && !c.Volatile:
		return errors.New("appendonly is no: a restart of the server would forget the allocations since its last snapshot; " +
			"set appendonly yes and appendfsync always, or add durability=none to the URL to accept that")
	case c.WaitLocal > 0 && s.info["aof_enabled"] != "1":
		return errors.New("waitaof=1 needs appendonly yes")
	}
	return nil
}

// olderThan compares the first two numbers of a version. Anything but a number is old.
func olderThan(version string, major, minor int) bool {
	var v [2]int
	_, _ = fmt.Sscanf(version, "%d.%d", &v[0], &v[1])
	return v[0] < major || v[0] == major && v[1] < minor
}

// keeps reports whether each write is on disk before it is acknowledged. In doubt not.
func (s server) keeps() bool {
	return s.info["aof_enabled"] == "1" && s.config["appendfsync"] == "always" && s.config["no-appendfsync-on-rewrite"] == "no"
}

// noReplid is the second replid of a server that has not been a replica since its start.
const noReplid = "0000000000000000000000000000000000000000"

func (s server) alone() bool {
	return !replicated(s.info["connected_slaves"], s.info["repl_backlog_active"]) && s.info["master_replid2"] == noReplid
}

// replicated reports whether the server has replicas or recently had some: the backlog outlives the
// last one by an hour. In doubt it reports true.
func replicated(replicas, backlog string) bool { return replicas != "0" || backlog != "0" }

// durability describes the durability of the settings, as a warning if it could be better.
func (s server) durability() (text string, level slog.Level) {
	fsync := s.config["appendfsync"]
	switch {
	case s.info["aof_enabled"] != "1":
		return "appendonly no: a restart of the server goes back to its last snapshot, or to nothing, and IDs may then be issued twice", slog.LevelWarn
	case s.config == nil:
		return "the user may not run CONFIG GET: the loss in a crash of the server's machine is unknown, at most a second with appendfsync everysec; " +
			"allow it (ACL SETUSER name +config|get)", slog.LevelWarn
	case s.keeps():
		return "appendfsync always: a restart loses nothing that was acknowledged; a fail-over to a replica may", slog.LevelInfo
	case fsync == "always":
		return "no-appendfsync-on-rewrite yes: a crash of the server's machine may lose writes acknowledged during a rewrite; set it to no",
			slog.LevelWarn
	}
	return "appendfsync " + fsync + ": a crash of the server's machine may lose writes acknowledged in the last two seconds (everysec) or half minute (no); " +
		"set appendfsync always to lose nothing", slog.LevelWarn
}
