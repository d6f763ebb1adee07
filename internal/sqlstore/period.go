package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"math"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// The counters of periods are rows of leaf_strict too, under names that no tag can have. Removing a
// period moves its row to leaf_deleted; removing the tag leaves it, so that no number comes back.

// nameEnd follows the tag in such a name, and comes before what may follow it in another one.
const nameEnd = "\x1f"

func periodName(tag, period string) string { return tag + nameEnd + period }

// createPeriod is moveStrict for a period without a row. The lock on the tag has the creators wait
// for one another.
func (s *Session) createPeriod(tag, period string, start, n int64) (bool, error) {
	name := periodName(tag, period)
	if _, err := s.load(tag, s.ForUpdate); err != nil {
		return false, err
	}
	if moved, err := s.moveStrict(name, start, n); err != nil || moved {
		return moved, err
	}
	if removed, err := s.removedPeriod(name); err != nil || removed {
		return false, cmp.Or[error](err, Refusal{segment.ErrPeriodRemoved(period)})
	}
	var present int64
	err := s.QueryRow(`SELECT max_id FROM leaf_strict WHERE name = $1`, name).Scan(&present)
	if !errors.Is(err, sql.ErrNoRows) || start > math.MaxInt64-n {
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return false, err // it is at its end
	}
	changed, err := s.Change(`INSERT INTO leaf_strict (name, max_id) VALUES ($1, $2)`, name, start+n)
	return changed == 1, err
}

func (s *Session) removedPeriod(name string) (bool, error) {
	if has, err := s.HasTable(deletedTable); err != nil || !has {
		return false, err
	}
	end, err := s.keptEnd(name)
	return end.Valid, err
}

// Periods lists the periods of a tag.
func (s *Session) Periods(tag string) ([]segment.Period, error) {
	r, err := s.loadAll(tag, "")
	if err != nil || !r.options.Periodic() {
		return nil, err
	}
	first := periodName(tag, "")
	rows, err := s.Query(`SELECT name, max_id FROM leaf_strict WHERE name BETWEEN $1 AND $2 ORDER BY name`, first, first+"~")
	return Collect(rows, err, func(scan func(...any) error) (p segment.Period, err error) {
		err = scan(&p.Name, &p.MaxID)
		p.Name = p.Name[len(first):]
		return p, err
	})
}

// RemovePeriod removes a period and keeps its counter in leaf_deleted.
func (s *Session) RemovePeriod(tag, period string) error {
	r, err := s.loadAll(tag, s.ForUpdate)
	if err != nil {
		return err
	}
	if err := r.options.CheckRemoval(period, time.Now()); err != nil {
		return Refusal{err}
	}
	if has, err := s.HasTable(deletedTable); err != nil || !has {
		return cmp.Or[error](err, Refusal{MissingTable{deletedTable, s.DeletedTable}})
	}
	var end int64
	name := periodName(tag, period)
	err = s.QueryRow(`SELECT max_id FROM leaf_strict WHERE name = $1`+s.ForUpdate, name).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return Refusal{segment.ErrNoPeriod(period)}
	}
	if err == nil {
		err = s.dropStrict(name)
	}
	if err == nil {
		_, err = s.Change(`INSERT INTO leaf_deleted (name, max_id) VALUES ($1, $2)`, name, end)
	}
	return cmp.Or(err, s.mark(deletedTable))
}
