package backend

import (
	"context"
	"fmt"

	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A Part is one of the two things that a backend may keep: tags, or worker IDs.
type Part struct {
	Unfit error // reports why the backend does not keep it; nil: it does

	b       *Backend
	name    string // for people
	workers bool   // it is the worker IDs
}

// Init creates the durable state, a store with these tags in it. If the state exists, Init leaves it
// as it is, and the error wraps [io/fs.ErrExist]. It wraps [ErrNothingToCreate] where nothing has to
// be created.
func (p *Part) Init(ctx context.Context, tags ...segment.Tag) error {
	if err := p.b.start(p); err != nil {
		return err
	}
	if db, ok := p.b.DB.(starter); ok {
		if err := db.Ready(ctx); err != nil {
			return p.wrap(err)
		}
	}
	if db, ok := p.b.DB.(registryCreator); ok && p.workers {
		return p.wrap(db.InitRegistry(ctx))
	}
	if db, ok := p.b.DB.(storeCreator); ok && !p.workers {
		return p.wrap(db.Init(ctx, tags))
	}
	return p.wrap(ErrNothingToCreate)
}

// Exists reports whether [Part.Init] has created the state, or need not.
func (p *Part) Exists(ctx context.Context) (bool, error) {
	_, creates := p.b.DB.(storeCreator)
	if p.workers {
		_, creates = p.b.DB.(registryCreator)
	}
	if p.Unfit != nil || !creates {
		return p.Unfit == nil, p.Unfit
	}
	opened, err := p.open()
	if err != nil {
		return false, err
	}
	ok, err := opened.(exister).Exists(ctx)
	return ok, p.wrap(err)
}

// Check reports why the state cannot be used as it is. It changes nothing.
func (p *Part) Check(ctx context.Context) error {
	opened, err := p.open()
	if err != nil {
		return err
	}
	switch o := opened.(type) {
	case interface{ Check(context.Context) error }:
		err = o.Check(ctx)
	case segment.Store:
		for _, err = range o.Tags(ctx) {
			break
		}
	case worker.Registry:
		_, err = o.List(ctx)
		if d, ok := o.(worker.Disposable); ok && err == nil {
			_, err = d.Starts(ctx, 1)
		}
	}
	return p.wrap(err)
}

// open returns the store, or the registry for a caller that claims no worker ID.
func (p *Part) open() (any, error) {
	if p.workers {
		return p.b.Registry(&RegistryOptions{Observe: true})
	}
	return p.b.Store()
}

func (p *Part) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", p.name, err)
}
