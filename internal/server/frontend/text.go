package frontend

import (
	"errors"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Text returns the words of err for callers. It replaces the words of a store or registry
// ([leaf.StoreError]), which may name servers, databases and users, by the known error that they
// wrap.
func Text(err error) string {
	text := err.Error()
	for _, e := range storeErrors(err) {
		if said := e.Error(); said != "" {
			text = strings.ReplaceAll(text, said, kindOfStoreError(e))
		}
	}
	return text
}

// storeErrors returns the errors in the tree of err that a store or registry gave, the
// outermost ones.
func storeErrors(err error) []*leaf.StoreError {
	switch e := err.(type) {
	case *leaf.StoreError:
		return []*leaf.StoreError{e}
	case interface{ Unwrap() error }:
		return storeErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var all []*leaf.StoreError
		for _, inner := range e.Unwrap() {
			all = append(all, storeErrors(inner)...)
		}
		return all
	}
	return nil
}

// kindOfStoreError describes a store's error without naming a server.
func kindOfStoreError(err error) string {
	const more = " (the log of the server says more)"
	switch {
	case errors.Is(err, segment.ErrNotCreated):
		return segment.ErrNotCreated.Error() + more
	case errors.Is(err, worker.ErrNotCreated):
		return worker.ErrNotCreated.Error() + more
	case errors.Is(err, leaf.ErrUnsupported), errors.Is(err, leaf.ErrInvalid): // not what the caller asked for
		return "unfit for use" + more
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.err.Error() + more
		}
	}
	return "no usable answer" + more
}
