package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// Restore fills an empty backend with a new store and a new registry, of the cells of a backup, as
// [Backend.List] yields them. They get identities of their own. Each counter is raised by jump, which
// must be at least how far any has moved since the backup. [worker.Restored] explains the records, now
// and the wait until a first start. The store appears last: a caller repeats a failed Restore in
// another backend.
func (d *DB) Restore(ctx context.Context, backup []Cell, jump int64, now time.Time) (wait time.Duration, err error) {
	if jump < 1 {
		return 0, fmt.Errorf("%w: a jump below 1", leaf.ErrInvalid)
	}
	err = d.do(ctx, func() error {
		if err := errors.Join(d.store.marker.absent(ctx), d.registry.marker.absent(ctx)); err != nil {
			return err
		}
		var records []worker.Record
		for _, cell := range backup {
			switch cell.Key.Kind {
			case Tags, Periods:
				if err := d.restoreTag(ctx, cell, jump); err != nil {
					return err
				}
			case Workers:
				record, err := readRecord(cell)
				if err != nil {
					return err
				}
				record.Version = ""
				records = append(records, record)
			}
		}
		records, wait = worker.Restored(records, now)
		for _, record := range records {
			text, err := record.MarshalText()
			if err != nil {
				return err
			}
			if _, err := d.backend.Swap(ctx, Cell{Key: workerKey(record.Worker)}, string(text)); err != nil {
				return err
			}
		}
		if err := d.registry.marker.write(ctx); err != nil {
			return err
		}
		return d.store.marker.write(ctx)
	})
	return wait, wrap(err, "restore the store")
}

// restoreTag writes a counter of a tag or of a period, or the rest of a deleted one, raised and
// without the identity of the old store.
func (d *DB) restoreTag(ctx context.Context, cell Cell, by int64) error {
	tag, err := readTag(Cell{Key: cell.Key, Value: cell.Value, Version: "backup"})
	if deleted := errors.Is(err, leaf.ErrUnknownTag); deleted {
		tag.Deleted = true
	} else if err != nil {
		return err
	}
	if tag.Deleted {
		by = min(by, math.MaxInt64-tag.MaxID)
	}
	if by > math.MaxInt64-tag.MaxID {
		return fmt.Errorf("%w: raise tag %q by %d from %d", leaf.ErrOverflow, cell.Key.Name, by, tag.MaxID)
	}
	tag.MaxID += by
	tag.Store, tag.Late = "", 0
	_, err = d.backend.Swap(ctx, Cell{Key: cell.Key}, tag.text())
	return err
}
