package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// The table leaf_strict keeps the counters of tags with strict order. Their rows in leaf_alloc stand
// at the largest int64: Java servers and older releases would serve them from a stock, and so
// overflow instead.

// full is the max_id in leaf_alloc of a tag with strict order.
const full = math.MaxInt64

// AdvanceStrict moves a counter in leaf_strict, within a transaction.
func (s *Session) AdvanceStrict(name string, n int64) (g segment.Grant, err error) {
	moved, err := s.Change(`UPDATE leaf_strict SET max_id = max_id + $2 WHERE name = $1 AND max_id <= $3`, name, n, full-n)
	if err != nil {
		return segment.Grant{}, err
	}
	r, err := s.loadAll(name, "")
	switch {
	case err != nil:
		return segment.Grant{}, err
	case !r.strict:
		return segment.Grant{}, Refusal{fmt.Errorf("%w: it has no strict order", leaf.ErrUnknownTag)}
	case moved != 1:
		return segment.Grant{}, Refusal{fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, n, r.maxID.V)}
	}
	err = s.QueryRow(`SELECT `+s.ReadIdentity()+`, `+cmp.Or(s.Server, `''`)).Scan(&g.Store, &g.Server)
	if err == nil {
		err = r.options.CheckStrict(g.Server != "")
	}
	g.Range, g.Step = leaf.Range{Start: r.maxID.V - n, End: r.maxID.V}, max(r.step.V, 1)
	return g, err
}

// IsStrict reports whether a tag has strict order.
func (s *Session) IsStrict(name string) (bool, error) {
	r, err := s.load(name, "")
	return r.strict, err
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
	if err := s.dropStrict(name); err != nil {
		return err
	}
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
