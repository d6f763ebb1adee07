package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// lookEvery is how long it takes at most to notice that a server's settings changed.
const lookEvery = time.Minute

// facts are what a server was like when it was looked at.
type facts struct {
	replid string
	reign  string // what [segment.Grant].Server is: replid, or in a cluster the name of the reign
	at     time.Time

	primaries map[string]bool // of a cluster: by master_replid, seen before the keys were found on this server

	// keeps: what was acknowledged is on this server's disk. A server that restarts
	// or takes over is another one if its replid differs, which it then always does.
	keeps bool
	// alone: no replica can take over, nor has this server taken over from another.
	alone bool
}

// lossless reports whether no acknowledged write can be lost, seen with how the
// server stands to replicas now.
func (f *facts) lossless() bool { return f.keeps && f.alone }

// known returns the facts of the server that was last looked at, not long ago.
func (c *client) known(ctx context.Context, conns *conns, node *goredis.Client) (*facts, error) {
	if f := c.facts.Load(); f != nil && time.Since(f.at) < lookEvery {
		return f, nil
	}
	select {
	case c.looking <- struct{}{}:
		defer func() { <-c.looking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if f := c.facts.Load(); f != nil && time.Since(f.at) < lookEvery {
		return f, nil
	}
	return c.look(ctx, conns, node)
}

// look asks the server what it is like, and fails if it must not be used. The caller
// holds c.looking.
func (c *client) look(ctx context.Context, conns *conns, node *goredis.Client) (*facts, error) {
	var primaries map[string]bool
	if c.config.Mode == Cluster {
		primaries = conns.primaries(ctx)
	}
	s, err := askServer(ctx, node)
	if err != nil {
		return nil, err
	}
	if err := s.unfit(c.config); err != nil {
		return nil, c.blame(err)
	}
	f := &facts{replid: s.info["master_replid"], at: time.Now(), primaries: primaries, keeps: s.keeps(), alone: c.config.Mode == Single && s.alone()}
	f.reign = f.replid
	if c.config.Mode == Cluster {
		if f.reign, err = c.reign(ctx, conns, node, f); err != nil {
			return nil, err
		}
		c.seen = f
	}
	if text, weak := s.durability(); text != c.said {
		c.said = text
		level := slog.LevelInfo
		if weak {
			level = slog.LevelWarn
		}
		c.logger.Log(ctx, level, "redis: "+text, "version", s.info["redis_version"], "server", c.config.Key())
	}
	c.facts.Store(f)
	return f, nil
}

// A server is what a server says of itself.
type server struct {
	info   map[string]string
	config map[string]string // nil if the user may not ask
}

func askServer(ctx context.Context, node *goredis.Client) (server, error) {
	pipe := node.Pipeline()
	info := pipe.Do(ctx, "info")
	names := []string{"appendfsync", "no-appendfsync-on-rewrite", "save"}
	configs := make([]*goredis.MapStringStringCmd, len(names))
	for i, name := range names {
		configs[i] = pipe.ConfigGet(ctx, name)
	}
	if _, err := pipe.Exec(ctx); unsent(info, err) {
		return server{}, err
	}
	text, err := info.Text()
	if err != nil {
		return server{}, err
	}
	s := server{info: parseInfo(text), config: make(map[string]string)}
	for i, cmd := range configs {
		values, err := cmd.Result()
		if _, refused := errors.AsType[goredis.Error](err); refused {
			s.config = nil
			break
		}
		if err != nil {
			return server{}, err
		}
		s.config[names[i]] = values[names[i]]
	}
	return s, nil
}

func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			info[name] = value
		}
	}
	return info
}

const minVersion, waitAOFVersion = "6.0", "7.2"

// unfit reports why the server must not be used.
func (s server) unfit(c Config) error {
	version := s.info["redis_version"]
	policy := s.info["maxmemory_policy"]
	switch {
	case s.info["redis_mode"] == "sentinel":
		return errors.New("this is a sentinel: write redis+sentinel://host:26379/MASTER")
	case s.info["role"] == "slave" && c.Mode != Sentinel: // with it, the script says so
		return fmt.Errorf("this is a replica: name its primary, %s:%s, in the URL, or the sentinels (redis+sentinel://)",
			s.info["master_host"], s.info["master_port"])
	case s.info["master_replid"] == "":
		return errors.New("the server does not tell its master_replid: it is no Redis that Leaf can use")
	case olderThan(version, minVersion):
		return fmt.Errorf("the server is Redis %s: Leaf needs %s or newer", version, minVersion)
	case c.WaitLocal+c.WaitReplicas > 0 && olderThan(version, waitAOFVersion):
		return fmt.Errorf("the server is Redis %s: waitaof needs %s or newer", version, waitAOFVersion)
	case s.info["cluster_enabled"] == "1" && c.Mode != Cluster:
		return errors.New("the server is a node of a cluster: write redis+cluster://")
	case s.info["maxmemory"] != "0" && policy != "noeviction":
		return fmt.Errorf("maxmemory-policy is %s: the server may drop counters when its memory is full; set it to noeviction", policy)
	case s.info["aof_enabled"] != "1" && !c.Volatile:
		return errors.New("appendonly is no: a restart of the server would forget what was allocated since its last snapshot; " +
			"set appendonly yes and appendfsync always, or add durability=none to the URL to accept that")
	case c.WaitLocal > 0 && s.info["aof_enabled"] != "1":
		return errors.New("waitaof=1 needs appendonly yes")
	}
	return nil
}

// olderThan compares the first two numbers of versions.
func olderThan(version, least string) bool {
	v, l := versionNumbers(version), versionNumbers(least)
	return v[0] < l[0] || v[0] == l[0] && v[1] < l[1]
}

func versionNumbers(text string) (n [2]int) {
	for i, part := range strings.SplitN(text, ".", 3)[:min(2, 1+strings.Count(text, "."))] {
		n[i], _ = strconv.Atoi(part) // what is no number is old
	}
	return n
}

// keeps reports whether each write is on disk before it is acknowledged. In doubt not.
func (s server) keeps() bool {
	return s.info["aof_enabled"] == "1" && s.config["appendfsync"] == "always" && s.config["no-appendfsync-on-rewrite"] == "no"
}

// noReplid is the second replid of a server that was never a replica since its start.
const noReplid = "0000000000000000000000000000000000000000"

func (s server) alone() bool {
	return !replicated(s.info["connected_slaves"], s.info["repl_backlog_active"]) && s.info["master_replid2"] == noReplid
}

// replicated reports whether there are replicas, or were lately: the backlog outlives
// the last one by an hour. In doubt there are.
func replicated(replicas, backlog string) bool { return replicas != "0" || backlog != "0" }

// durability says what the settings mean for what is acknowledged, and whether that
// is less than could be.
func (s server) durability() (text string, weak bool) {
	if s.info["aof_enabled"] != "1" {
		back := "to nothing"
		if save := s.config["save"]; save != "" {
			back = fmt.Sprintf("to the last snapshot (save %s)", save)
		} else if s.config == nil {
			back = "to the last snapshot, if there is one"
		}
		return "appendonly no: a restart of the server goes back " + back + ", and IDs may then be issued twice", true
	}
	fsync := s.config["appendfsync"]
	switch {
	case s.config == nil:
		return "the user may not run CONFIG GET: what a crash of the server's machine loses is not known, at most a second with appendfsync everysec; " +
			"allow it (ACL SETUSER name +config|get)", true
	case s.keeps():
		return "appendfsync always: a restart loses nothing that was acknowledged; a fail-over to a replica may", false
	case fsync == "always":
		return "no-appendfsync-on-rewrite yes: a crash of the server's machine may lose what was acknowledged during a rewrite; set it to no", true
	case fsync == "everysec":
		return "appendfsync everysec: a crash of the server's machine may lose what was acknowledged in the last second or two; " +
			"set appendfsync always to lose nothing", true
	}
	return fmt.Sprintf("appendfsync %s: a crash of the server's machine may lose what was acknowledged in the last half minute; "+
		"set appendfsync always to lose nothing", fsync), true
}
