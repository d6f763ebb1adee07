package server

import (
	"context"
	"os"
	"time"

	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A Backend is what a URL names: a store of tags, a registry of worker IDs, or both. A
// server does not know drivers: cmd/leaf opens the backend and hands it over.
type Backend struct {
	Name   string // the URL, without its password
	Key    string // identifies the state behind the URL
	Traits Traits

	Tags, Workers Part
	NoWorkers     error // why it keeps no worker IDs, nil if it does

	Store    func() (segment.Store, error)
	Registry func(RegistryOptions) (worker.Registry, error)
	Close    func() error // also ends what Store and Registry returned
}

// A Part is one of the two things that a backend may keep.
type Part interface {
	// Exists reports whether it was created.
	Exists(context.Context) (bool, error)

	// Init creates it, or fails, wrapping [io/fs.ErrExist].
	Init(ctx context.Context, tags ...segment.Tag) error
}

// Traits say what holds of a backend.
type Traits struct {
	Local      bool // no other machine reaches it
	Ticket     bool // the tags' IDs come from ticket servers
	Assigned   bool // the registry says which worker ID to use
	Disposable bool // each start of a process uses a worker ID up

	// See [worker.Options].
	Reclaim    bool
	Settle     bool
	ClaimDelay time.Duration
	MaxAhead   time.Duration // of the clock, at most; 0: not bounded
}

// RegistryOptions are what a registry may need of the server.
type RegistryOptions struct {
	Lock    func(name string) (*os.File, error) // opens and locks a file of the data directory
	Ahead   time.Duration                       // how far beyond the clock the server issues
	Port    int
	Memory  segment.Memory // which worker IDs this machine has used up; nil: not remembered
	Observe bool
}
