package drivers

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// An ownedStatic closes its file, and with it ends the lock, with itself.
type ownedStatic struct {
	*worker.Static
	file *os.File
}

func (o *ownedStatic) Close() error { return o.file.Close() }

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
	file, err := o.Lock(fmt.Sprintf("static-%d", id))
	if err != nil {
		return nil, err
	}
	static, err := worker.OpenStatic(file, id, o.Ahead)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &ownedStatic{static, file}, nil
}
