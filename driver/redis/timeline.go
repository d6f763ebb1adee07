package redis

import (
	"context"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// In a cluster the keys may move from one primary to another, which loses nothing, or a replica may
// take over, which may lose writes. Both show as another master_replid. The key {PREFIX}:timeline
// holds two of them: the name of the timeline, which is [segment.Grant].Server, and the last server
// with that name. The first client that finds the keys on another server decides for all clients
// whether the timeline continues. If so, it writes the new server under the old name. If not, or in
// doubt, it writes a new name, which trips every guard.
//
// The timeline continues if the former server, which the key names, has handed its keys over, and
// both servers have lost nothing:
//
//   - The former server answers that another one has the slot, and is still a primary with its old
//     master_replid. So it neither restarted nor lost its role to a replica, and it moved
//     everything that it ever acknowledged. An isolated and replaced primary claims the slot until
//     it hears of its successor, and then becomes that one's replica.
//   - The new server was a primary with its present master_replid when this client last found the
//     keys somewhere, and the keys came to it since. So it has not replaced a server with more
//     writes, and has not restarted since the keys came.
//
// So a fail-over never passes for a move: the former server is gone or a replica, and the
// master_replid of the new one is too young. Old observations prove nothing, because the keys may
// have been in several places since. One case remains: within that time the keys move, their new
// server loses writes in a fail-over, and they move to a third one while the first one still runs.

// maxSeen bounds the age of an observation of the servers.
const maxSeen = 2 * lookEvery

// timeline returns the name of the timeline of the keys on a server. It holds c.reading.
func (c *client) timeline(ctx context.Context, conns *conns, node *goredis.Client, f *facts) (string, error) {
	own := f.replid + " " + f.replid
	old, new := "", own
	for range 2 {
		held, err := c.replaceTimeline(ctx, node, f, old, new)
		if err != nil {
			return "", err
		}
		if held == "" { // no store and no registry: check again later
			f.at = time.Time{}
			return f.replid, nil
		}
		name, server, _ := strings.Cut(held, " ")
		if server == f.replid {
			return name, nil
		}
		if old, new = held, own; c.handedOver(ctx, conns, server, f) {
			new = name + " " + f.replid
		}
	}
	return "", errUnsettled
}

// replaceTimeline sets the key to new if it holds old, and returns its content.
func (c *client) replaceTimeline(ctx context.Context, node *goredis.Client, f *facts, old, new string) (held string, err error) {
	keys := []string{c.config.key("store"), c.config.key("registry"), c.config.key("timeline")}
	values, err := timelineScript.Run(ctx, node, keys, f.replid, old, new).StringSlice()
	if err == nil && len(values) != 1 {
		err = errMalformed
	}
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// handedOver reports whether the keys came from a server to the one that f is about, and
// that neither has lost anything meanwhile.
func (c *client) handedOver(ctx context.Context, conns *conns, from string, f *facts) bool {
	if seen := c.seen; seen == nil || !seen.primaries[f.replid] || time.Since(seen.at) > maxSeen {
		return false
	}
	return conns.askPrimaries(ctx, func(ctx context.Context, node *goredis.Client) bool {
		_, moved := goredis.IsMovedError(node.Exists(ctx, c.config.key("timeline")).Err())
		return moved // and it is still a primary afterwards
	})[from]
}

// primaries returns the master_replid of every primary that answers.
func (s *conns) primaries(ctx context.Context) map[string]bool {
	return s.askPrimaries(ctx, func(context.Context, *goredis.Client) bool { return true })
}

// askPrimaries asks all primaries at once, for a second at most, and returns the
// master_replid of those that say yes, and are primaries by their own words afterwards.
func (s *conns) askPrimaries(ctx context.Context, ask func(context.Context, *goredis.Client) bool) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	var mu sync.Mutex
	yes := make(map[string]bool)
	_ = s.UniversalClient.(*goredis.ClusterClient).ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
		said := ask(ctx, node)
		text, err := node.Info(ctx, "replication").Result()
		info := parseInfo(text)
		if said && err == nil && info["role"] == "master" {
			mu.Lock()
			defer mu.Unlock()
			yes[info["master_replid"]] = true
		}
		return nil // one that does not answer says nothing
	})
	return yes
}
