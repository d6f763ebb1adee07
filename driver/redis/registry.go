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
)

var (
	_ kv.Backend = backend{}
	_ kv.Namer   = backend{}
	_ kv.Lossy   = backend{}
)

// A backend is the hash of a registry; its fields are the cells. The version of a cell is
// an equals sign and its value: a registry compares whole records.
type backend struct{ client *client }

func (b backend) String() string            { return "Redis" }
func (b backend) KeyName(key string) string { return "field " + key + " of key " + b.hash()[0] }
func (b backend) hash() []string            { return []string{b.client.config.key("registry")} }
func (b backend) Close() error              { return b.client.close() }
func cell(key, value string) (held kv.Cell) {
	return kv.Cell{Key: key, Value: value, Version: "=" + value}
}

// MayLoseWrites reports whether the server, or one that takes over from it, may lack
// writes that were acknowledged. In doubt it may.
func (b backend) MayLoseWrites(ctx context.Context) (bool, error) {
	b.client.facts.Store(nil) // so that it is asked now
	a, err := b.client.run(ctx, command{script: clockScript})
	if err != nil {
		return false, fmt.Errorf("ask whether the registry loses writes: %w", err)
	}
	return !a.facts.lossless(), nil
}

// Get returns the cell of a key.
func (b backend) Get(ctx context.Context, key string) (kv.Cell, error) {
	a, err := b.client.run(ctx, command{script: getScript, keys: b.hash(), args: []any{key}})
	if err != nil || len(a.values) == 0 {
		return kv.Cell{Key: key}, err
	}
	return cell(key, a.values[0]), nil
}

// Swap has the cell hold value if it holds old.
func (b backend) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	_, err := b.client.run(ctx, command{script: swapScript, keys: b.hash(), args: []any{old.Key, old.Version, value}, confirm: true})
	if err != nil {
		return kv.Cell{}, err
	}
	return cell(old.Key, value), nil
}

// List yields the cells whose keys begin with prefix. HSCAN may give one twice. A cursor
// means nothing to another server, nor to one that was started again: there the scan begins
// anew.
func (b backend) List(ctx context.Context, prefix string) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		seen := make(map[string]bool)
		for cursor, server := "0", ""; ; {
			a, err := b.client.run(ctx, command{script: scanScript, keys: b.hash(), args: []any{cursor}})
			if err != nil || len(a.values)%2 == 0 {
				yield(kv.Cell{}, cmp.Or(err, errMalformed))
				return
			}
			for i := 1; i < len(a.values); i += 2 {
				key := a.values[i]
				if strings.HasPrefix(key, prefix) && !seen[key] && !yield(cell(key, a.values[i+1]), nil) {
					return
				}
				seen[key] = true
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
