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
	name := Redact(rawURL)
	u, err := find(rawURL)
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", name, err)
	}
	u.log = cmp.Or(logger, u.log)
	b, err := u.open(u)
	if err == nil {
		// Whether the way to a server is encrypted does not make it another one.
		b.Key = strings.NewReplacer("rediss", "redis", "leafs", "leaf").Replace(u.scheme) + ":" + b.Key
		err = u.complete(b.Complete(name))
	}
	if _, ok := errors.AsType[malformed](err); ok {
		err = fmt.Errorf("%w: %w: write %s", leaf.ErrInvalid, err, u.form)
	}
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", name, err)
	}
	return b, nil
}

// complete applies the parameters that any store or registry has. If they mean nothing to this one,
// it closes the backend.
func (u *target) complete(b *Backend) error {
	t := &b.Traits
	t.Reclaim, t.ClaimDelay, t.StoreID = u.reclaim, u.claimDelay, u.storeID
	if u.forWorkers != "" && b.Tags.Unfit == nil {
		b.Tags.Unfit = fmt.Errorf("%w: URL %s: %s is %w", leaf.ErrInvalid, b.Name, u.forWorkers, hint.ErrWorkersOnly)
	}
	switch {
	case t.Reclaim && !t.Assigned:
		u.fail(invalid("%s=machine is for worker IDs that are assigned (static:, zookeeper: with layout=leaf); "+
			"here another one is claimed instead", paramReclaim))
	case t.Disposable && t.ClaimDelay != 0:
		u.fail(invalid("%s means nothing with %s=%s: no start waits for another one", paramClaimDelay, paramLayout, layoutNodes))
	default:
		return nil
	}
	return errors.Join(u.err, b.Close())
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
