package drivers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/worker"
)

// A static ends its locks with itself: of its file, and of its worker ID among the
// data directories of this machine.
type static struct {
	*worker.Static
	file    *os.File
	machine io.Closer
}

func (s *static) Close() error { return errors.Join(s.machine.Close(), s.file.Close()) }

// openStatic reads N?parameters.
func openStatic(u *target) (*Backend, error) {
	id, err := strconv.ParseInt(u.address, 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != u.address {
		u.fail(invalid("write the worker ID as a number, as in static:7"))
	}
	u.key, u.traits = u.address, Traits{Local: true, Assigned: true}
	return &Backend{DB: staticDB{id: id}}, nil
}

// A staticDB is a worker ID that the operator has chosen.
type staticDB struct{ id int64 }

func (staticDB) Close() error { return nil }

func (d staticDB) OpenRegistry(o *RegistryOptions) (worker.Registry, error) {
	if o.Lock == nil {
		return nil, hint.ErrServersOwn
	}
	name := fmt.Sprintf("static-%d", d.id)
	file, err := o.Lock(name)
	if err != nil {
		return nil, err
	}
	machine, err := datadir.LockMachine(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: give each server a worker ID of its own", err), file.Close())
	}
	s := &static{file: file, machine: machine}
	if s.Static, err = worker.OpenStatic(file, d.id, o.Hold); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
