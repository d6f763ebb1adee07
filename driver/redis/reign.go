package redis

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// In a cluster the keys move from one primary to another, which is no loss, or a replica
// takes over, which may be one. Both show as another master_replid. The key
// {PREFIX}:reign holds two of them: the name of the reign, which is [segment.Grant].Server,
// and the server under which that name was last found right. The first client that meets the keys
// on another server decides for all whether the reign continues. If it does, the key gets
// the new server under the old name; if not, or if it cannot be known, a new name, which
// trips every guard.
//
// The reign goes on if the former server, which the key names, has handed its keys over,
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

// reign returns the name of the reign under which a server has the keys. It holds c.looking.
func (c *client) reign(ctx context.Context, conns *conns, node *goredis.Client, f *facts) (string, error) {
	own := f.replid + " " + f.replid
	held, err := c.replaceReign(ctx, node, f, "", own)
	if err != nil || held == "" { // no store, and no registry
		return f.replid, err
	}
	name, server, _ := strings.Cut(held, " ")
	switch {
	case server == f.replid:
		return name, nil
	case c.handedOver(ctx, conns, server, f):
		own = name + " " + f.replid
	}
	if held, err = c.replaceReign(ctx, node, f, held, own); err != nil {
		return "", err
	}
	if name, server, _ = strings.Cut(held, " "); server != f.replid {
		return "", errUnsettled
	}
	return name, nil
}

// replaceReign has the key hold text if it holds old, and returns what it then holds.
func (c *client) replaceReign(ctx context.Context, node *goredis.Client, f *facts, old, text string) (held string, err error) {
	keys := []string{c.config.key(storeUse().marker), c.config.key(registryUse().marker), c.config.key("reign")}
	reply, err := c.send(ctx, node, command{script: c.scripts.reign, keys: keys}, []any{format, f.replid, old, text})
	switch {
	case err != nil:
		return "", err
	case len(reply) != 2 || reply[0] != answerOK:
		return "", errUnsettled
	}
	return reply[1], nil
}

// handedOver reports whether the keys came from a server to the one that f is about, and
// that neither has lost anything meanwhile.
func (c *client) handedOver(ctx context.Context, conns *conns, from string, f *facts) bool {
	if seen := c.seen; seen == nil || !seen.primaries[f.replid] || time.Since(seen.at) > maxSeen {
		return false
	}
	handed := false
	conns.eachPrimary(ctx, func(ctx context.Context, node *goredis.Client) (found func()) {
		// In this order: it was a primary even after it had handed over.
		_, moved := goredis.IsMovedError(node.Do(ctx, "exists", c.config.key("reign")).Err())
		replid, err := replidOf(ctx, node)
		return func() { handed = handed || moved && err == nil && replid == from }
	})
	return handed
}

// primaries returns the master_replid of every primary that answers.
func (s *conns) primaries(ctx context.Context) map[string]bool {
	all := make(map[string]bool)
	s.eachPrimary(ctx, func(ctx context.Context, node *goredis.Client) func() {
		replid, err := replidOf(ctx, node)
		return func() {
			if err == nil {
				all[replid] = true
			}
		}
	})
	return all
}

// eachPrimary asks all primaries at once, for a second at most, and runs what asking
// returns one at a time.
func (s *conns) eachPrimary(ctx context.Context, ask func(context.Context, *goredis.Client) (found func())) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	var mu sync.Mutex
	_ = s.cluster.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
		found := ask(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		found()
		return nil // one that does not answer says nothing
	})
}

var errNoPrimary = errors.New("the server is no primary")

func replidOf(ctx context.Context, node *goredis.Client) (string, error) {
	text, err := node.Info(ctx, "replication").Result()
	if err != nil {
		return "", err
	}
	info := parseInfo(text)
	if info["role"] != "master" || info["master_replid"] == "" {
		return "", errNoPrimary
	}
	return info["master_replid"], nil
}
