package drivers

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/hint"
)

// The types of package backend, which a server knows too.
type (
	Backend         = backend.Backend
	Part            = backend.Part
	Traits          = backend.Traits
	RegistryOptions = backend.RegistryOptions
	Resize          = backend.Resize
)

// ErrNothingToCreate is wrapped where a registry needs no [Part.Init].
var ErrNothingToCreate = backend.ErrNothingToCreate

// ErrSeveralStores is wrapped where the hosts of one URL are not those of one store.
var ErrSeveralStores = backend.ErrSeveralStores

// Open returns the backend of a URL. It neither connects nor creates anything. If the URL is
// malformed, the error wraps [leaf.ErrInvalid]. Without a logger nothing is logged.
func Open(rawURL string, logger *slog.Logger) (*Backend, error) {
	u, err := find(rawURL)
	var b *Backend
	if err == nil {
		u.log = cmp.Or(logger, u.log)
		b, err = u.backend(Redact(rawURL))
	}
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", Redact(rawURL), err)
	}
	return b, nil
}

// backend opens a URL. The first problem of the URL counts more than what the driver says of it.
func (u *target) backend(name string) (*Backend, error) {
	b, err := u.open(u)
	u.fail(err)
	if err = u.check(); err == nil {
		// Whether the way to a server is encrypted does not make it another one.
		b.Key = strings.NewReplacer("rediss", "redis", "leafs", "leaf").Replace(u.scheme) + ":" + u.key
		b.Traits, b.Hosts = u.traits, u.hosts()
		err = u.complete(b.Complete(name))
	}
	if err != nil && b != nil {
		err = errors.Join(err, b.Close())
	}
	return b, err
}

// complete refuses the parameters of worker IDs where they mean nothing.
func (u *target) complete(b *Backend) error {
	for _, name := range []string{paramReclaim, paramClaimDelay} {
		if u.params.Has(name) && b.Tags.Unfit == nil {
			b.Tags.Unfit = fmt.Errorf("%w: URL %s: %s is %w", leaf.ErrInvalid, b.Name, name, hint.ErrWorkersOnly)
		}
	}
	switch {
	case b.Traits.Reclaim && !b.Traits.Assigned:
		return invalid("%s=machine is for worker IDs that are assigned (static:, zookeeper: with layout=leaf); "+
			"here another one is claimed instead", paramReclaim)
	case b.Traits.Disposable && b.Traits.ClaimDelay != 0:
		return invalid("%s means nothing with %s=%s: no start waits for another one", paramClaimDelay, paramLayout, layoutNodes)
	}
	return nil
}

// CheckStore reports, wrapping [leaf.ErrInvalid], why a URL names no store. It contacts nothing.
func CheckStore(rawURL string) error {
	return check(rawURL, func(b *Backend) *Part { return &b.Tags })
}

// CheckRegistry is CheckStore for registries of worker IDs.
func CheckRegistry(rawURL string) error {
	return check(rawURL, func(b *Backend) *Part { return &b.Workers })
}

func check(rawURL string, part func(*Backend) *Part) error {
	b, err := Open(rawURL, nil)
	if err != nil {
		return err
	}
	return errors.Join(part(b).Unfit, b.Close())
}
