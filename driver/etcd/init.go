package etcd

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/segment"
)

// initTags is how many tags come into being together with the store: etcd bounds the
// size of a transaction, to 128 operations by default.
const initTags = 100

// Init creates a store below the prefix, with the given tags in it. Where there is
// one, or keys of one, it fails with an error that wraps [io/fs.ErrExist].
func Init(ctx context.Context, endpoints []string, opts *Options, tags []segment.Tag) error {
	if err := segment.CheckTags(tags); err != nil {
		return fmt.Errorf("init etcd store: %w", err)
	}
	store, err := Open(endpoints, opts)
	if err != nil {
		return err
	}
	defer store.Close()
	together := tags[:min(len(tags), initTags)]
	if err := store.init(ctx, together); err != nil {
		return fmt.Errorf("init etcd store: %w", err)
	}
	for _, tag := range tags[len(together):] {
		if err := store.Create(ctx, tag); err != nil {
			return fmt.Errorf("init etcd store: it was created, not all of its tags were: %w", err)
		}
	}
	return nil
}

func (s *Store) init(ctx context.Context, tags []segment.Tag) error {
	puts := make([]clientv3.Op, len(tags))
	for i, tag := range tags {
		puts[i] = clientv3.OpPut(s.client.folder+tag.Name, newTagText(tag).written())
	}
	return s.client.create(ctx, puts)
}

// Exists reports whether there is a store below the prefix.
func Exists(ctx context.Context, endpoints []string, opts *Options) (bool, error) {
	return exists(ctx, endpoints, opts, tagKind())
}

// InitRegistry creates a registry below the prefix. Where there is one, or keys of
// one, it fails with an error that wraps [io/fs.ErrExist].
func InitRegistry(ctx context.Context, endpoints []string, opts *Options) error {
	c, err := newClient(endpoints, opts.withDefaults(), workerKind())
	if err == nil {
		defer c.close()
		err = c.create(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("init etcd registry: %w", err)
	}
	return nil
}

// ExistsRegistry reports whether there is a registry below the prefix.
func ExistsRegistry(ctx context.Context, endpoints []string, opts *Options) (bool, error) {
	return exists(ctx, endpoints, opts, workerKind())
}

func exists(ctx context.Context, endpoints []string, opts *Options, k kind) (bool, error) {
	c, err := newClient(endpoints, opts.withDefaults(), k)
	if err != nil {
		return false, err
	}
	defer c.close()
	return c.created(ctx)
}
