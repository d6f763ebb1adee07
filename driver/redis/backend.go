package redis

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ kv.Backend = backend{}
	_ kv.Adder   = backend{}
	_ kv.Namer   = backend{}
	_ kv.Lossy   = backend{}
)

// A backend is two hashes, of a store and of a registry; their fields are the cells. A version is
// an equals sign, because Swap compares values: each record is another one, and so is each value of
// a tag, which has the time in it. That of a cell that Add moved is the server's master_replid.
type backend struct{ client *client }

func (b backend) String() string { return "Redis" }

// KeyName returns the field of a key.
func (b backend) KeyName(key kv.Key) string {
	return "field " + key.String() + " of key " + b.hash(key)[0]
}

// hash returns the hash that a key is a field of.
func (b backend) hash(key kv.Key) []string {
	kind := key.Kind
	if kind == kv.Format {
		kind = kv.Kind(key.Name)
	}
	if kind == kv.Workers {
		return []string{b.client.config.key("registry")}
	}
	return []string{b.client.config.key("store")}
}

// Close ends the connections.
func (b backend) Close() error { return b.client.close() }

func cell(key kv.Key, value string) kv.Cell { return kv.Cell{Key: key, Value: value, Version: looked} }

// looked is the version of a cell after a read or a swap.
const looked = "="

// written returns a cell after a write. It names the server if a replica of it may not have the write,
// by what the server said of its replicas at the write.
func written(cell kv.Cell, a answer, replicas []string) (kv.Cell, error) {
	if len(replicas) != 2 {
		return kv.Cell{}, errMalformed
	}
	if !a.facts.lossless() || replicated(replicas[0], replicas[1]) {
		cell.Server = a.facts.timeline
	}
	return cell, nil
}

// ServerEpoch returns which server answers. Its master_replid changes with each restart of a
// primary and each takeover, and never comes back. In a cluster the keys move between primaries
// that stand, so there it names no epoch.
func (b backend) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	b.client.facts.Store(nil) // so that the next call checks the server
	a, err := b.client.run(ctx, command{script: clockScript})
	if err != nil {
		return worker.ServerEpoch{}, fmt.Errorf("ask whether the registry loses writes: %w", err)
	}
	epoch := worker.ServerEpoch{Lossy: !a.facts.lossless(), Incarnation: a.facts.replid}
	if b.client.config.Mode == Cluster {
		epoch.Incarnation = ""
	}
	return epoch, nil
}

// Get returns the cell of a key.
func (b backend) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	a, err := b.client.run(ctx, command{script: getScript, keys: b.hash(key), args: []any{key.String()}})
	if err != nil || len(a.values) == 0 {
		return kv.Cell{Key: key}, err
	}
	return cell(key, a.values[0]), nil
}

// Swap sets the cell to value if it holds old. It replaces the result of an Add only on the server
// of that Add: a server that took over without it may have granted the same IDs to another client.
// The result of a swap may be replaced anywhere, since the new cell names the server.
func (b backend) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	cmd := command{script: swapScript, keys: b.hash(old.Key), args: []any{old.Key.String(), "", value}, confirm: true}
	if old.Version != "" {
		cmd.args[1] = looked + old.Value
	}
	if old.Version != looked {
		cmd.server, cmd.confirm = old.Version, old.Version == ""
	}
	a, err := b.client.run(ctx, cmd)
	if err != nil {
		return kv.Cell{}, err
	}
	return written(cell(old.Key, value), a, a.values)
}

// Add moves the counter in the cell of a tag.
func (b backend) Add(ctx context.Context, key kv.Key, n int64) (now kv.Cell, by int64, err error) {
	a, err := b.client.run(ctx, command{script: addScript, keys: b.hash(key), args: []any{key.String(), n}, confirm: true})
	if err != nil || len(a.values) == 0 {
		return kv.Cell{Key: key}, 0, err
	}
	if len(a.values) < 2 {
		return kv.Cell{}, 0, errMalformed
	}
	if now, err = written(kv.Cell{Key: key, Value: a.values[0], Version: a.facts.replid}, a, a.values[2:]); err != nil {
		return now, 0, err
	}
	by, err = strconv.ParseInt(a.values[1], 10, 64)
	return now, by, err
}

// List yields the cells of a kind. HSCAN may return one twice. Its cursor is
// valid on one server until a restart; after that the scan begins again.
func (b backend) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		folder := kv.Key{Kind: kind}
		seen := make(map[string]bool)
		for cursor, server := "0", ""; ; {
			a, err := b.client.run(ctx, command{script: scanScript, keys: b.hash(folder), args: []any{cursor}})
			if err != nil || len(a.values)%2 == 0 {
				yield(kv.Cell{}, cmp.Or(err, errMalformed))
				return
			}
			for i := 1; i < len(a.values); i += 2 {
				field := a.values[i]
				name, ok := strings.CutPrefix(field, folder.String())
				if ok && !seen[field] && !yield(cell(kv.Key{Kind: kind, Name: name}, a.values[i+1]), nil) {
					return
				}
				seen[field] = true
			}
			cursor = a.values[0]
			if server != "" && server != a.facts.replid {
				cursor = "0"
			} else if cursor == "0" {
				return
			}
			server = a.facts.replid
		}
	}
}

// Clock returns the server's time.
func (b backend) Clock(ctx context.Context) (time.Time, error) {
	a, err := b.client.run(ctx, command{script: clockScript})
	if err != nil || len(a.values) != 1 {
		return time.Time{}, cmp.Or(err, errMalformed)
	}
	us, err := strconv.ParseInt(a.values[0], 10, 64)
	return time.UnixMicro(us), err
}
