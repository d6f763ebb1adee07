package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ kv.Lossy   = (*backend)(nil)
	_ kv.Watcher = (*backend)(nil)
)

// The keys of one read of a listing: few at first, because a probe needs only one. Then many,
// because for each page etcd reads all remaining keys.
const (
	firstPage = 16
	maxPage   = 8192
)

// A backend is the keys below a prefix. It is a [kv.Backend], a [kv.Lossy] and a [kv.Watcher].
type backend struct {
	client *client
	prefix string // of all keys, with its slash
	clock  *clock
	now    func(context.Context) (time.Time, error) // instead of clock, unless nil
}

// String names etcd and its members.
func (b *backend) String() string { return "etcd at " + b.client.String() }

// KeyName returns the key with its prefix.
func (b *backend) KeyName(key kv.Key) string { return "key " + b.path(key) }

func (b *backend) path(key kv.Key) string { return b.prefix + key.String() }

// Get returns the cell of a key, as the majority has agreed on it.
func (b *backend) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	answer, err := b.client.read(ctx, clientv3.OpGet(b.path(key)))
	if err != nil {
		return kv.Cell{}, b.explain(ctx, err)
	}
	return b.cell(key, answer.Kvs), nil
}

// Swap has the cell hold value if its key has old's revision, and old's value: a revision
// comes back when the cluster is restored from a backup.
func (b *backend) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	key := b.path(old.Key)
	var compare []clientv3.Cmp
	if old.Version == "" {
		compare = []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	} else {
		revision, err := strconv.ParseInt(old.Version, 10, 64)
		if err != nil {
			return kv.Cell{}, err
		}
		compare = []clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(key), "=", revision),
			clientv3.Compare(clientv3.Value(key), "=", old.Value),
		}
	}
	resp, err := b.client.send(ctx, compare, clientv3.OpPut(key, value), clientv3.OpGet(key))
	switch {
	case err != nil:
		return kv.Cell{}, b.explain(ctx, err)
	case !resp.Succeeded:
		return b.cell(old.Key, resp.Responses[0].GetResponseRange().GetKvs()), kv.ErrConflict
	}
	return kv.Cell{Key: old.Key, Value: value, Version: strconv.FormatInt(resp.Header.Revision, 10), Server: b.client.server()}, nil
}

// cell returns the content of a key.
func (b *backend) cell(key kv.Key, found []*mvccpb.KeyValue) kv.Cell {
	c := kv.Cell{Key: key, Server: b.client.server()}
	if len(found) > 0 {
		c.Value, c.Version = string(found[0].Value), strconv.FormatInt(found[0].ModRevision, 10)
	}
	return c
}

// List yields the cells of a kind by name, each page as it is when it is read. A cell
// that exists from first to last is yielded once.
func (b *backend) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		folder := b.path(kv.Key{Kind: kind})
		from, end := folder, clientv3.GetPrefixRangeEnd(folder)
		for limit := firstPage; ; limit = min(4*limit, maxPage) {
			answer, err := b.client.read(ctx, clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(int64(limit))))
			if err != nil {
				yield(kv.Cell{}, b.explain(ctx, err))
				return
			}
			for i, pair := range answer.Kvs {
				if !yield(b.cell(kv.Key{Kind: kind, Name: strings.TrimPrefix(string(pair.Key), folder)}, answer.Kvs[i:]), nil) {
					return
				}
				from = string(pair.Key) + "\x00"
			}
			if len(answer.Kvs) < limit {
				return
			}
		}
	}
}

// ServerEpoch reports that etcd may lose writes after its revision has gone back: other clients may
// hold leases that etcd no longer knows.
func (b *backend) ServerEpoch(context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{Lossy: b.client.wentBack.Load()}, nil
}

// Watch returns a channel that closes after a write to a key, or after etcd's revision went back.
// It reads the key once a second: etcd's own watch would wait in vain for revisions from before a
// restore.
func (b *backend) Watch(ctx context.Context, key kv.Key) (<-chan struct{}, error) {
	before := b.client.revision.Load()
	first, err := b.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{})
	go func() {
		defer close(changed)
		poll := time.NewTicker(watchInterval)
		defer poll.Stop()
		for b.client.revision.Load() >= before {
			select {
			case <-poll.C:
			case <-ctx.Done():
				return
			case <-b.client.ctx.Done():
				return
			}
			if now, err := b.Get(ctx, key); err == nil && now != first {
				return
			}
		}
	}()
	return changed, nil
}

// watchInterval is how often a watch reads.
const watchInterval = time.Second

// Clock returns the time of one member: the Date of its HTTP server in whole seconds, so it is up
// to a second behind.
func (b *backend) Clock(ctx context.Context) (time.Time, error) {
	if b.now != nil {
		return b.now(ctx)
	}
	stopped, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.client.ctx, cancel)()
	now, err := b.clock.read(stopped)
	if err != nil && b.client.ctx.Err() != nil {
		err = leaf.ErrClosed
	}
	return now, b.explain(ctx, err)
}

// Close ends the connections.
func (b *backend) Close() error {
	b.clock.http.CloseIdleConnections()
	return b.client.close()
}

// explain adds a remedy to an error. The result never has a password.
func (b *backend) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if advice := b.advice(err); advice != "" {
		err = fmt.Errorf("%s: %w", advice, err)
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
