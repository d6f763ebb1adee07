// Package uuids makes UUIDs as text: of version 4, which are random, and of version 7,
// which begin with the time and sort in the order in which they were made. They need no
// store, no worker ID and no other server; that they are unique rests on 122 and 62
// random bits. They are no 64-bit IDs and so no [leaf.Generator].
package uuids

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/leaf-id/leaf"
)

// The versions of RFC 9562 that there are generators of.
const (
	V4 = 4
	V7 = 7
)

// MaxBatch is the largest number of UUIDs made at once.
const MaxBatch = 1_000_000

// TextLength is the length of a UUID as text, such as
// 0192f3d0-7c1e-7abc-8def-0123456789ab.
const TextLength = 36

// A Generator makes UUIDs of one version. Its methods are safe for concurrent use.
type Generator struct {
	make func() (uuid.UUID, error)
}

// New returns a generator of version [V4] or [V7]. All generators of version 7 in a
// process make one ascending sequence: each UUID is greater than all whose making had
// ended before its own began, as text and as bytes, also within a millisecond and when
// the clock has been set back. Then, and where more than 3.9 million a second are asked
// for, the time in them runs ahead of the clock.
//
// Another version is an error that wraps [leaf.ErrInvalid].
func New(version int) (*Generator, error) {
	switch version {
	case V4:
		return &Generator{uuid.NewRandom}, nil
	case V7:
		return &Generator{uuid.NewV7}, nil
	}
	return nil, fmt.Errorf("%w: UUID version %d: there are 4 and 7", leaf.ErrInvalid, version)
}

// Next returns a UUID in its text form of [TextLength] lower-case characters. It fails
// only where the system has no random numbers.
func (g *Generator) Next() (string, error) {
	id, err := g.make()
	if err != nil {
		return "", fmt.Errorf("make a UUID: %w", err)
	}
	return id.String(), nil
}

// Append appends n UUIDs to dst, each greater than the one before where they are of
// version 7, and returns it. An n outside 0 … [MaxBatch] is an error that wraps
// [leaf.ErrInvalid]. After an error dst has none of them.
func (g *Generator) Append(dst []string, n int) ([]string, error) {
	if n < 0 || n > MaxBatch {
		return dst, fmt.Errorf("%w: %d UUIDs at once are not in 0 … %d", leaf.ErrInvalid, n, MaxBatch)
	}
	before := len(dst)
	for range n {
		id, err := g.Next()
		if err != nil {
			return dst[:before], err
		}
		dst = append(dst, id)
	}
	return dst, nil
}

// Version returns the version that a key of the scheme uuid asks for: v4 for the key
// v4, otherwise v7, of which every other key is a label. The name of another version
// is an error that wraps [leaf.ErrInvalid].
func Version(key string) (int, error) {
	switch {
	case key == "v4":
		return V4, nil
	case len(key) == 2 && key[0] == 'v' && key[1] >= '1' && key[1] <= '8' && key != "v7":
		return 0, fmt.Errorf("%w: UUID version %s: there are v4 and v7", leaf.ErrInvalid, key)
	}
	return V7, nil
}
