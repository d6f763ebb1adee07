package issuer

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/leaf-id/leaf"
)

// UUIDs is the [Source] of UUIDs: of random ones (version 4) under the key v4, and of those
// that begin with the time (version 7) under every other key, a label. They need no store,
// no worker ID and no other server: 122 and 62 random bits make them unique.
//
// All of version 7 in a process are one ascending sequence: each is greater than all
// whose making had ended before its own began, as text and as bytes, also within a
// millisecond and when the clock has been set back. Then, and if callers ask for more than
// 3.9 million a second, the time in them runs ahead of the clock.
type UUIDs struct{}

// Next returns a UUID of 36 lower-case characters. It fails for a key that names another
// version, and where the system has no random numbers.
func (UUIDs) Next(_ context.Context, key string) (ID, error) {
	generate, err := version(key)
	if err != nil {
		return ID{}, err
	}
	id, err := generate()
	if err != nil {
		return ID{}, fmt.Errorf("make a UUID: %w", err)
	}
	return ID{Text: id.String()}, nil
}

// Take returns n UUIDs, which reading makes. It panics there if the system has no random numbers.
func (UUIDs) Take(_ context.Context, key string, n int) (IDs, error) {
	generate, err := version(key)
	if err != nil {
		return IDs{}, err
	}
	return IDs{Texts: Texts{n, func() string { return uuid.Must(generate()).String() }}}, nil
}

// Check reports, wrapping [leaf.ErrInvalid], a key that names another version.
func (UUIDs) Check(_ context.Context, key string) error {
	_, err := version(key)
	return err
}

// version returns what makes the UUIDs of a key.
func version(key string) (func() (uuid.UUID, error), error) {
	switch {
	case key == "v4":
		return uuid.NewRandom, nil
	case len(key) == 2 && key[0] == 'v' && key[1] >= '1' && key[1] <= '8' && key != "v7":
		return nil, fmt.Errorf("%w: UUID version %s: there are v4 and v7", leaf.ErrInvalid, key)
	}
	return uuid.NewV7, nil
}
