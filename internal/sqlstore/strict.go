package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// The table leaf_strict keeps the counters of tags with strict order. Their rows in leaf_alloc stand
// at the largest int64: Java servers and older releases would serve them from a stock, and so
// overflow instead.

// full is the max_id in leaf_alloc of a tag with strict order.
const full = math.MaxInt64

// AdvanceStrict moves a counter in leaf_strict, within a transaction: that of the tag, or of one of
// its periods. Masked: the caller hides the numbers.
func (s *Session) AdvanceStrict(name, period string, masked bool, n int64) (g segment.Grant, err error) {
	r, err := s.loadAll(name, "")
	if err != nil {
		return segment.Grant{}, err
	}
	if !r.strict {
		return segment.Grant{}, Refusal{fmt.Errorf("%w: it has no strict order", leaf.ErrUnknownTag)}
	}
	period, err = r.options.PeriodOf(period, time.Now())
	if err == nil {
		err = r.options.CheckStrict(false, masked)
	}
	if err != nil {
		return segment.Grant{}, Refusal{err}
	}
	counter, start := name, int64(0)
	if period != "" {
		counter, start = periodName(name, period), r.maxID.V
	}
	moved, err := s.moveStrict(counter, start, n)
	if err == nil && !moved && period != "" {
		moved, err = s.createPeriod(name, period, start, n)
	}
	if err == nil && !moved {
		err = Refusal{fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, n, r.maxID.V)}
	}
	if err != nil {
		return segment.Grant{}, err
	}
	g = segment.Grant{Step: max(r.step.V, 1), Period: period, Source: period}
	var settings string
	err = s.QueryRow(`SELECT max_id, `+s.ReadIdentity()+`, `+cmp.Or(s.Server, `''`)+`, `+cmp.Or(s.Settings, `''`)+` FROM leaf_strict WHERE name = $1`, counter).
		Scan(&g.Range.End, &g.Store, &g.Server, &settings)
	if err != nil {
		return segment.Grant{}, err
	}
	if err := r.options.CheckStrict(s.Settings != "" && s.MayLose(settings), masked); err != nil {
		return segment.Grant{}, Refusal{err} // the transaction is undone
	}
	g.Range.Start = g.Range.End - n
	return g, nil
}

// moveStrict moves a counter in leaf_strict by n, from at least start; false: it is not there, or at
// its end.
func (s *Session) moveStrict(name string, start, n int64) (bool, error) {
	if start > full-n {
		return false, nil
	}
	moved, err := s.Change(`UPDATE leaf_strict SET max_id = $2 + CASE WHEN max_id < $4 THEN $4 ELSE max_id END WHERE name = $1 AND max_id <= $3`,
		name, n, full-n, start)
	return moved == 1, err
}

// Stockless returns the error of a call that would make a stock of the tag.
func (s *Session) Stockless(name string) error {
	r, err := s.loadAll(name, "")
	if err == nil && r.strict {
		err = Refusal{cmp.Or(r.options.Stockless(), segment.ErrStrict)}
	}
	return err
}

// counted returns r with the counter in leaf_strict if that is its own; there may be a word about
// locking it.
func (s *Session) counted(r row, lock string) (row, error) {
	if r.maxID.V != full {
		return r, nil
	}
	if has, err := s.HasTable(strictTable); err != nil || !has {
		return r, err
	}
	err := s.QueryRow(`SELECT max_id FROM leaf_strict WHERE name = $1`+lock, r.name).Scan(&r.maxID.V)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	r.strict = err == nil
	return r, err
}

// createStrict puts the counter of a new tag into leaf_strict.
func (s *Session) createStrict(name string, maxID int64) error {
	_, err := s.Change(`INSERT INTO leaf_strict (name, max_id) VALUES ($1, $2)`, name, maxID)
	if err == nil {
		err = s.mark(strictTable)
	}
	return err
}

func (s *Session) setStrict(name string, maxID int64) error {
	_, err := s.Change(`UPDATE leaf_strict SET max_id = $2 WHERE name = $1`, name, maxID)
	return err
}

func (s *Session) dropStrict(name string) error {
	_, err := s.Change(`DELETE FROM leaf_strict WHERE name = $1`, name)
	return err
}
