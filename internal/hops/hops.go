// Package hops keeps servers whose store, or registry, is another server from asking each
// other in a circle. Every such server has a random name. A call that a server passes on
// carries the names of all servers that it came through; an answer about IDs in memory, which
// are fetched ahead of calls, carries those that they come through.
package hops

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
)

// Headers of requests and of answers.
const (
	Via   = "Leaf-Via"   // the servers that a call came through
	Route = "Leaf-Route" // the servers that IDs come through, the one that answers first
	Store = "Leaf-Store" // the identity of the store whose tags are listed
)

// ErrLoop is wrapped where servers are each other's store, or registry. It is a
// [leaf.ErrUnsupported]: somebody has to change a URL.
var ErrLoop = fmt.Errorf("%w: the URL leads back to this server", leaf.ErrUnsupported)

// Name returns a new name.
func Name() string { return rand.Text() }

// Parse returns the names in the value of a header.
func Parse(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// Format returns names as the value of a header.
func Format(names []string) string { return strings.Join(names, ",") }

// maxHops bounds the length of a chain of servers.
const maxHops = 8

// Check reports a loop: name is among the names, or they are too many.
func Check(name string, names []string) error {
	switch {
	case slices.Contains(names, name):
		return ErrLoop
	case len(names) >= maxHops:
		return fmt.Errorf("%w: there are more than %d servers behind one another", leaf.ErrUnsupported, maxHops)
	}
	return nil
}

type key struct{}

// With returns a context that carries the names of the servers that a call came through.
func With(ctx context.Context, names []string) context.Context {
	if len(names) == 0 {
		return ctx
	}
	return context.WithValue(ctx, key{}, names)
}

// From returns the names that ctx carries.
func From(ctx context.Context) []string {
	names, _ := ctx.Value(key{}).([]string)
	return names
}
