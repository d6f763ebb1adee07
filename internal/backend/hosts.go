package backend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrSeveralStores is wrapped where the hosts of one URL are not hosts of one store.
var ErrSeveralStores = errors.New("the hosts do not belong to one store, so IDs would come twice: correct the URL")

// A Host is one of several in a URL.
type Host struct {
	Name string

	// Identities asks this host alone for the identity of each part, by the name of the part.
	Identities func(ctx context.Context) (map[string]string, error)
}

// hostTimeout bounds the wait for a host, so that an absent one does not hold up a start.
const hostTimeout = 2 * time.Second

// CompareHosts asks all hosts of the URL for their identities. It returns those that did not
// answer, and an error that wraps [ErrSeveralStores] if two hosts have different ones: two
// processes that use one host each would issue the same IDs.
func (b *Backend) CompareHosts(ctx context.Context) (silent []error, err error) {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	identities := make([]map[string]string, len(b.Hosts))
	failures := make([]error, len(b.Hosts))
	var wg sync.WaitGroup
	for i, h := range b.Hosts {
		wg.Go(func() { identities[i], failures[i] = h.Identities(ctx) })
	}
	wg.Wait()
	known := make(map[string]int) // the host that told it first, by part
	for i, h := range b.Hosts {
		if failures[i] != nil {
			silent = append(silent, fmt.Errorf("%s: %w", h.Name, failures[i]))
		}
		for part, identity := range identities[i] {
			first, ok := known[part]
			if !ok {
				known[part] = i
			} else if theirs := identities[first][part]; theirs != identity {
				return silent, fmt.Errorf("%w: URL %s: the %s at %s has the identity %q, and that at %s %q",
					ErrSeveralStores, b.Name, part, b.Hosts[first].Name, theirs, h.Name, identity)
			}
		}
	}
	return silent, nil
}
