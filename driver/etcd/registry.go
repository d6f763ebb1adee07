package etcd

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var _ worker.Registry = (*Registry)(nil)

// A Registry keeps the records of workers in etcd. It is a [worker.Registry]. Its
// methods are safe for concurrent use.
type Registry struct {
	client  *client
	http    *http.Client
	version []string     // URLs that tell the time
	answers atomic.Int64 // the one of them that did so last, modulo their number
	skipped sync.Map     // keys that were logged because they are no worker's
}

// OpenRegistry returns a registry in the etcd whose members have the given endpoints,
// host:port each. It does not connect: what is wrong shows at the first call. The
// error wraps [leaf.ErrInvalid] if an argument is malformed.
func OpenRegistry(endpoints []string, opts *Options) (*Registry, error) {
	o := opts.withDefaults()
	version, err := versionURLs(endpoints, o)
	if err != nil {
		return nil, fmt.Errorf("open etcd registry: %w", err)
	}
	c, err := newClient(endpoints, o, workerKind())
	if err != nil {
		return nil, fmt.Errorf("open etcd registry: %w", err)
	}
	return &Registry{client: c, version: version, http: newHTTP(o.TLS)}, nil
}

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	var record worker.Record
	err := r.client.attempt(ctx, func() error {
		if id < 0 {
			return fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		}
		h, err := r.client.load(ctx, r.key(id))
		if err == nil {
			record, err = readRecord(id, h)
		}
		return err
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	return record, nil
}

// Swap writes new in the place of old. It is sent once.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) error {
	err := r.client.attempt(ctx, func() error {
		switch {
		case old.Worker != new.Worker:
			return fmt.Errorf("%w: the old record is of worker %d", leaf.ErrInvalid, old.Worker)
		case new.Worker < 0:
			return fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		case new.IsZero():
			return fmt.Errorf("%w: the new record is empty", leaf.ErrInvalid)
		}
		return r.swap(ctx, old, new)
	})
	if err != nil {
		return fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	return nil
}

// swap compares records, not texts: one record may have been written in two ways, by
// another release or by hand. The transaction compares the revision of what was read.
func (r *Registry) swap(ctx context.Context, old, new worker.Record) error {
	text, err := new.MarshalText()
	if err != nil {
		return err
	}
	was, err := r.client.load(ctx, r.key(old.Worker))
	if err != nil {
		return err
	}
	record, err := readRecord(old.Worker, was)
	if err != nil {
		return err
	}
	if !record.Equal(old) {
		return worker.ErrConflict
	}
	swapped, _, err := r.client.put(ctx, r.key(new.Worker), was, string(text))
	if err == nil && !swapped {
		return fmt.Errorf("%w meanwhile", worker.ErrConflict)
	}
	return err
}

// List returns all records, by worker ID. It fails if there is one that it cannot read.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) {
	var all []worker.Record
	var after *string
	for {
		records, last, err := r.page(ctx, after)
		if err != nil {
			return nil, fmt.Errorf("list workers: %w", err)
		}
		all = append(all, records...)
		if last == nil {
			break
		}
		after = last
	}
	slices.SortFunc(all, func(a, b worker.Record) int { return cmp.Compare(a.Worker, b.Worker) })
	return all, nil
}

// page returns the records behind a name, and the name at the page's end if more may
// follow. A key that is no worker's is left out and logged.
func (r *Registry) page(ctx context.Context, after *string) (records []worker.Record, last *string, err error) {
	err = r.client.attempt(ctx, func() error {
		page, err := r.client.page(ctx, after, maxPage)
		if err != nil {
			return err
		}
		for _, kv := range page {
			name := string(kv.Key[len(r.client.folder):])
			last = &name
			id, err := strconv.ParseInt(name, 10, 64)
			if err != nil || id < 0 || strconv.FormatInt(id, 10) != name {
				if _, known := r.skipped.LoadOrStore(name, true); !known {
					r.client.logger.Warn("key left out of the workers: delete it", "key", string(kv.Key))
				}
				continue
			}
			record, err := readRecord(id, held{string(kv.Value), kv.ModRevision})
			if err != nil {
				return fmt.Errorf("worker %d: %w", id, err)
			}
			records = append(records, record)
		}
		if len(page) < maxPage {
			last = nil
		}
		return nil
	})
	return records, last, err
}

// Clock returns the time of one member, the same one for as long as that answers: the
// Date of its HTTP server, which is cut off to whole seconds, so that it is up to a
// second behind.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := r.client.attempt(ctx, func() (err error) {
		now, err = r.clock(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the registry's clock: %w", err)
	}
	return now, nil
}

// Close ends the connections. Calls that wait fail with an error that wraps
// [leaf.ErrClosed], as later calls do.
func (r *Registry) Close() error {
	err := r.client.close()
	r.http.CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close etcd registry: %w", err)
	}
	return nil
}

func (r *Registry) key(id int64) string { return r.client.folder + strconv.FormatInt(id, 10) }

func readRecord(id int64, h held) (worker.Record, error) {
	record := worker.Record{Worker: id}
	if h.revision == 0 {
		return record, nil
	}
	if err := record.UnmarshalText([]byte(h.text)); err != nil {
		return worker.Record{}, err
	}
	return record, nil
}
