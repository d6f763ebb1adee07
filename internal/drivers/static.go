package drivers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/worker"
)

// An ownedStatic ends its locks with itself: of its file, and of its worker ID among the
// data directories of this machine.
type ownedStatic struct {
	*worker.Static
	file    *os.File
	machine io.Closer
}

func (o *ownedStatic) Close() error { return errors.Join(o.machine.Close(), o.file.Close()) }

// parseStatic reads N?parameters.
func parseStatic(rest string) (registrySource, error) {
	number, query, _ := strings.Cut(rest, "?")
	id, err := strconv.ParseInt(number, 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != number {
		return registrySource{}, fmt.Errorf("%w: write the worker ID as a number, as in static:7", leaf.ErrInvalid)
	}
	params, err := parseParams(query)
	if err != nil {
		return registrySource{}, err
	}
	terms, err := cutTerms(params, true)
	if err == nil {
		err = onlyParams(params)
	}
	if err != nil {
		return registrySource{}, err
	}
	return registrySource{
		key:      number,
		assigned: true,
		terms:    terms,
		open:     func(o RegistryOptions) (Registry, error) { return openStatic(id, o) },
	}, nil
}

func openStatic(id int64, o RegistryOptions) (Registry, error) {
	if o.Lock == nil {
		return nil, errors.New("its record is in the data directory of a server: ask that server")
	}
	name := fmt.Sprintf("static-%d", id)
	file, err := o.Lock(name)
	if err != nil {
		return nil, err
	}
	machine, err := datadir.LockMachine(name)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: give each server a worker ID of its own", err), file.Close())
	}
	s := &ownedStatic{file: file, machine: machine}
	if s.Static, err = worker.OpenStatic(file, id, o.Ahead); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
