package etcd

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/driver/kv"
)

// Open returns the store and the registry in the etcd whose members have the given
// endpoints, host:port each. It does not connect: what is wrong shows at the first call.
// The error wraps leaf.ErrInvalid if an argument is malformed.
func Open(endpoints []string, opts *Options) (*kv.DB, error) {
	o := opts.withDefaults()
	version, err := versionURLs(endpoints, o)
	if err != nil {
		return nil, fmt.Errorf("open etcd: %w", err)
	}
	c, err := newClient(endpoints, o)
	if err != nil {
		return nil, fmt.Errorf("open etcd: %w", err)
	}
	return kv.New(&backend{client: c, version: version, http: newHTTP(o.TLS)}, nil), nil
}

// A backend is the keys below a prefix.
type backend struct {
	client  *client
	http    *http.Client
	version []string     // URLs that tell the time
	answers atomic.Int64 // the one of them that did so last, modulo their number
}

// String names etcd and its members.
func (b *backend) String() string { return "etcd at " + b.client.String() }

// KeyName returns the key with its prefix.
func (b *backend) KeyName(key string) string { return "key " + b.client.prefix + key }

// The keys that a listing reads at once: few at first, because a probe needs only one.
const (
	firstPage = 16
	maxPage   = 512
)

// Get returns the cell of a key, as the majority has agreed on it.
func (b *backend) Get(ctx context.Context, key string) (cell kv.Cell, err error) {
	err = b.attempt(ctx, func() error {
		resp, err := b.client.ask(ctx, txn{then: []clientv3.Op{clientv3.OpGet(b.client.prefix + key)}})
		if err == nil {
			cell = b.cell(key, resp.Responses[0])
		}
		return err
	})
	return cell, err
}

// Swap has the cell hold value if its key has old's revision, and old's value: a revision
// comes back when the cluster is restored from a backup.
func (b *backend) Swap(ctx context.Context, old kv.Cell, value string) (now kv.Cell, err error) {
	key := b.client.prefix + old.Key
	compare := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	if old.Version != "" {
		revision, err := strconv.ParseInt(old.Version, 10, 64)
		if err != nil {
			return kv.Cell{}, err
		}
		compare = []clientv3.Cmp{
			clientv3.Compare(clientv3.ModRevision(key), "=", revision),
			clientv3.Compare(clientv3.Value(key), "=", old.Value),
		}
	}
	err = b.attempt(ctx, func() error {
		resp, err := b.client.send(ctx, txn{
			compare:   compare,
			then:      []clientv3.Op{clientv3.OpPut(key, value)},
			otherwise: []clientv3.Op{clientv3.OpGet(key)},
		})
		switch {
		case err != nil:
			return err
		case !resp.Succeeded:
			now = b.cell(old.Key, resp.Responses[0])
			return kv.ErrConflict
		}
		now = kv.Cell{Key: old.Key, Value: value, Version: strconv.FormatInt(resp.Header.Revision, 10), Server: b.client.server()}
		return nil
	})
	return now, err
}

// cell returns what a key was found to hold.
func (b *backend) cell(key string, answer *etcdserverpb.ResponseOp) kv.Cell {
	kvs := answer.GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return kv.Cell{Key: key, Server: b.client.server()}
	}
	return b.found(kvs[0])
}

func (b *backend) found(pair *mvccpb.KeyValue) kv.Cell {
	return kv.Cell{
		Key: strings.TrimPrefix(string(pair.Key), b.client.prefix), Value: string(pair.Value),
		Version: strconv.FormatInt(pair.ModRevision, 10), Server: b.client.server(),
	}
}

// List yields the cells below prefix by key, each page as it is when it is read. A cell
// that exists from first to last is yielded once.
func (b *backend) List(ctx context.Context, prefix string) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		from := b.client.prefix + prefix
		end := clientv3.GetPrefixRangeEnd(from)
		for limit := firstPage; ; limit = min(4*limit, maxPage) {
			page, err := b.page(ctx, from, end, limit)
			if err != nil {
				yield(kv.Cell{}, err)
				return
			}
			for _, pair := range page {
				if !yield(b.found(pair), nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
			from = string(page[len(page)-1].Key) + "\x00"
		}
	}
}

func (b *backend) page(ctx context.Context, from, end string, limit int) (page []*mvccpb.KeyValue, err error) {
	err = b.attempt(ctx, func() error {
		get := clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)))
		resp, err := b.client.ask(ctx, txn{then: []clientv3.Op{get}})
		if err == nil {
			page = resp.Responses[0].GetResponseRange().GetKvs()
		}
		return err
	})
	return page, err
}

// Clock returns the time of one member, the same one for as long as that answers: the Date
// of its HTTP server, which is cut off to whole seconds, so it is up to a second behind.
func (b *backend) Clock(ctx context.Context) (now time.Time, err error) {
	err = b.attempt(ctx, func() (err error) {
		now, err = b.clock(ctx)
		return err
	})
	return now, err
}

// Close ends the connections.
func (b *backend) Close() error {
	b.http.CloseIdleConnections()
	return b.client.close()
}

// attempt makes a call and explains its error.
func (b *backend) attempt(ctx context.Context, call func() error) error {
	err := call()
	if err == nil || errors.Is(err, kv.ErrConflict) {
		return err
	}
	err = b.client.explain(err)
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
