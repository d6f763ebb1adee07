package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry      = (*Registry)(nil)
	_ worker.LossyRegistry = (*Registry)(nil)
)

// listChunk is how many cells of a List are read at a time.
const listChunk = 512

// A Registry keeps the records of workers in a Redis. It is a [worker.Registry] and a
// [worker.LossyRegistry]. Its methods are safe for concurrent use.
type Registry struct{ client *client }

// OpenRegistry returns the registry that config names. It does not connect, see
// [OpenStore]. The error wraps [leaf.ErrInvalid].
func OpenRegistry(config Config, opts *Options) (*Registry, error) {
	c, err := newClient(config, opts.logger())
	if err != nil {
		return nil, fmt.Errorf("open redis registry: %w", err)
	}
	return &Registry{c}, nil
}

func (r *Registry) marker() string { return r.client.config.key(registryUse().marker) }
func (r *Registry) index() string  { return r.client.config.key("workers") }

func (r *Registry) cell(id int64) string {
	return r.client.config.key("worker:" + strconv.FormatInt(id, 10))
}

// do runs a command, whose marker it adds, and fails unless the answer is ok. key is
// the one that an error may be about.
func (r *Registry) do(ctx context.Context, key string, cmd command) (answer, error) {
	cmd.keys = append([]string{r.marker()}, cmd.keys...)
	a, err := r.client.run(ctx, cmd)
	switch {
	case err != nil:
		return answer{}, err
	case a.status == answerMoved:
		return answer{}, errMoved
	case a.status != answerOK:
		return answer{}, r.client.failed(registryUse(), a, key)
	}
	return a, nil
}

// A heldCell is what a cell holds.
type heldCell struct {
	written bool
	text    string
}

func readCell(fields []string) (heldCell, error) {
	if len(fields) != 2 {
		return heldCell{}, errMalformed
	}
	return heldCell{fields[0] == "1", fields[1]}, nil
}

func (c heldCell) record(id int64) (worker.Record, error) {
	record := worker.Record{Worker: id}
	if !c.written {
		return record, nil
	}
	if err := record.UnmarshalText([]byte(c.text)); err != nil {
		return worker.Record{}, err
	}
	return record, nil
}

func (r *Registry) load(ctx context.Context, id int64) (heldCell, error) {
	a, err := r.do(ctx, r.cell(id), command{script: r.client.scripts.load, keys: []string{r.cell(id)}})
	if err != nil {
		return heldCell{}, err
	}
	return readCell(a.rest)
}

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	record, err := attempt(ctx, r.client, func() (worker.Record, error) {
		if id < 0 {
			return worker.Record{}, errNegative
		}
		held, err := r.load(ctx, id)
		if err != nil {
			return worker.Record{}, err
		}
		return held.record(id)
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	return record, nil
}

var errNegative = fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)

// Swap writes new in the place of old. It is sent once.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) error {
	_, err := attempt(ctx, r.client, func() (answer, error) {
		switch {
		case old.Worker != new.Worker:
			return answer{}, fmt.Errorf("%w: the old record is of worker %d", leaf.ErrInvalid, old.Worker)
		case new.Worker < 0:
			return answer{}, errNegative
		case new.IsZero():
			return answer{}, fmt.Errorf("%w: the new record is empty", leaf.ErrInvalid)
		}
		return r.swap(ctx, old, new)
	})
	if err != nil {
		return fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	return nil
}

// swap compares records first, and then has the server compare texts: one record may
// have been written in two ways, by another release or by hand.
func (r *Registry) swap(ctx context.Context, old, new worker.Record) (answer, error) {
	text, err := new.MarshalText()
	if err != nil {
		return answer{}, err
	}
	held, err := r.load(ctx, old.Worker)
	if err != nil {
		return answer{}, err
	}
	record, err := held.record(old.Worker)
	if err != nil {
		return answer{}, err
	}
	if !record.Equal(old) {
		return answer{}, worker.ErrConflict
	}
	if err := ctx.Err(); err != nil {
		return answer{}, err // nobody waits for it any more
	}
	written := "0"
	if held.written {
		written = "1"
	}
	cell := r.cell(old.Worker)
	return r.do(ctx, cell, command{script: r.client.scripts.swap, keys: []string{cell, r.index()},
		args: []any{written, held.text, text, old.Worker}, confirm: true})
}

// List returns all records, by worker ID. It fails if there is one that it cannot read.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) {
	all, err := attempt(ctx, r.client, func() ([]worker.Record, error) { return r.list(ctx) })
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	return all, nil
}

func (r *Registry) list(ctx context.Context) ([]worker.Record, error) {
	a, err := r.do(ctx, r.index(), command{script: r.client.scripts.workers, keys: []string{r.index()}})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, len(a.rest))
	for i, text := range a.rest {
		if ids[i], err = strconv.ParseInt(text, 10, 64); err != nil || ids[i] < 0 {
			return nil, fmt.Errorf("the key %s names worker %.20q, which is none: remove that from it", r.index(), text)
		}
	}
	slices.Sort(ids)
	var all []worker.Record
	for chunk := range slices.Chunk(ids, listChunk) {
		if all, err = r.appendCells(ctx, all, chunk); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// appendCells reads some cells. One that is gone although its ID is listed was deleted
// by somebody, and is as if it had never been written.
func (r *Registry) appendCells(ctx context.Context, all []worker.Record, ids []int64) ([]worker.Record, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = r.cell(id)
	}
	a, err := r.do(ctx, r.index(), command{script: r.client.scripts.cells, keys: keys})
	if err != nil {
		return nil, err
	}
	if len(a.rest) != 2*len(ids) {
		return nil, errMalformed
	}
	for i, id := range ids {
		held, err := readCell(a.rest[2*i : 2*i+2])
		if err != nil {
			return nil, err
		}
		record, err := held.record(id)
		if err != nil {
			return nil, fmt.Errorf("worker %d: %w", id, err)
		}
		if held.written {
			all = append(all, record)
		}
	}
	return all, nil
}

// Clock returns the server's time.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) {
	now, err := attempt(ctx, r.client, func() (time.Time, error) {
		a, err := r.do(ctx, "", command{script: r.client.scripts.clock})
		if err != nil {
			return time.Time{}, err
		}
		if len(a.rest) != 1 {
			return time.Time{}, errMalformed
		}
		us, err := strconv.ParseInt(a.rest[0], 10, 64)
		return time.UnixMicro(us), err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the registry's clock: %w", err)
	}
	return now, nil
}

// MayLoseWrites reports whether the server, or one that takes over from it, may lack
// writes that were acknowledged. In doubt it may.
func (r *Registry) MayLoseWrites(ctx context.Context) (bool, error) {
	forgets, err := attempt(ctx, r.client, func() (bool, error) {
		r.client.facts.Store(nil) // so that it is asked now
		a, err := r.do(ctx, "", command{script: r.client.scripts.clock})
		if err != nil {
			return false, err
		}
		return !a.facts.lossless(), nil
	})
	if err != nil && !errors.Is(err, leaf.ErrClosed) {
		err = fmt.Errorf("ask whether the registry loses writes: %w", err)
	}
	return forgets, err
}

// Close ends the connections. Later calls fail with an error that wraps [leaf.ErrClosed].
func (r *Registry) Close() error { return r.client.close() }
