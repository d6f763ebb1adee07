package drivers_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// with opens a URL for one call.
func with(rawURL string, call func(*drivers.Backend) error) error {
	b, err := drivers.Open(rawURL, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	return call(b)
}

func initStore(ctx context.Context, rawURL string, tags ...segment.Tag) error {
	return with(rawURL, func(b *drivers.Backend) error { return b.Tags.Init(ctx, tags...) })
}

func initRegistry(ctx context.Context, rawURL string) error {
	return with(rawURL, func(b *drivers.Backend) error { return b.Workers.Init(ctx) })
}

func storeExists(ctx context.Context, rawURL string) (exists bool, err error) {
	err = with(rawURL, func(b *drivers.Backend) (err error) {
		exists, err = b.Tags.Exists(ctx)
		return err
	})
	return exists, err
}

func registryExists(ctx context.Context, rawURL string) (exists bool, err error) {
	err = with(rawURL, func(b *drivers.Backend) (err error) {
		exists, err = b.Workers.Exists(ctx)
		return err
	})
	return exists, err
}

func keyOf(rawURL string) (key string, err error) {
	err = with(rawURL, func(b *drivers.Backend) error {
		key = b.Key
		return nil
	})
	return key, err
}

func traitsOf(rawURL string) (traits drivers.Traits, err error) {
	err = with(rawURL, func(b *drivers.Backend) error {
		traits = b.Traits
		return nil
	})
	return traits, err
}

// backend opens a URL until t ends.
func backend(t *testing.T, rawURL string) *drivers.Backend {
	t.Helper()
	b, err := drivers.Open(rawURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func open(t *testing.T, rawURL string) segment.Store {
	t.Helper()
	s, err := backend(t, rawURL).Store()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openRegistry(t *testing.T, rawURL string, o *drivers.RegistryOptions) worker.Registry {
	t.Helper()
	r, err := backend(t, rawURL).Registry(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
