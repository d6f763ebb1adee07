package redis

import (
	"context"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// In a cluster the keys move from one primary to another, which is no loss, or a replica
// takes over, which may be one. Both show as another master_replid. The key
// {PREFIX}:timeline holds two of them: the name of the timeline, which is [segment.Grant].Server,
// and the server under which that name was last found right. The first client that meets the keys
// on another server decides for all whether the timeline continues. If it does, the key gets
// the new server under the old name; if not, or if it cannot be known, a new name, which
// trips every guard.
//
// The timeline goes on if the former server, which the key names, has handed its keys over,
// and both have lost nothing:
//
//   - The former one answers that the slot is another's, and is then still a primary with
//     its old master_replid: it was neither restarted, nor replaced by a replica, and all
//     that it ever acknowledged was there to be moved. A primary that was cut off and
//     replaced takes the slot for its own until it hears of its successor, and becomes
//     that one's replica when it does.
//   - The new one was a primary with the master_replid that it has when this client last
//     found the keys somewhere, and they came to it since: it has not taken over from a
//     server that knew more, and was not restarted since they came.
//
// So a fail-over is no handing over: the former server is gone, or a replica, and the
// master_replid of the new one is too young. What a client saw long ago proves nothing,
// because the keys may have been in several places since. What remains: within that time
// the keys move, the server that has them then loses writes in a fail-over, and they move
// on to a third one, while the first one stands.

// maxSeen is how old what was seen of the servers may be.
const maxSeen = 2 * lookEvery

// timeline returns the name of the timeline of the keys on a server. It holds c.looking.
func (c *client) timeline(ctx context.Context, conns *conns, node *goredis.Client, f *facts) (string, error) {
	own := f.replid + " " + f.replid
	old, new := "", own
	for range 2 {
		held, err := c.replaceTimeline(ctx, node, f, old, new)
		if err != nil {
			return "", err
		}
		if held == "" { // no store, and no registry: look again once there is one
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

// replaceTimeline has the key hold new if it holds old, and returns what it then holds.
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
