package sqlstore

import (
	"cmp"
	"database/sql"
	"errors"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// The table leaf_deleted keeps the counters of deleted tags. Other servers may still issue IDs of a
// deleted tag, so a new tag of that name continues above them. Rows only rise, and stay.

// keptEnd returns the end of the deleted tag with that name; not valid without such a tag.
func (s *Session) keptEnd(name string) (end sql.Null[int64], err error) {
	err = s.QueryRow(`SELECT max_id FROM leaf_deleted WHERE name = $1`+s.ForUpdate, name).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return sql.Null[int64]{}, nil
	}
	return end, err
}

// formerEnd returns where a new tag of that name may begin: above the one that Remove deleted, and
// above one whose row of leaf_alloc was deleted by hand. Not valid without either.
func (s *Session) formerEnd(name string) (end sql.Null[int64], err error) {
	has, err := s.HasTable(deletedTable)
	if err == nil && has {
		end, err = s.keptEnd(name)
	}
	if err != nil {
		return end, err
	}
	left, err := s.takeLeftover(name)
	if left.Valid && (!end.Valid || left.V > end.V) {
		end = left
	}
	return end, err
}

// takeLeftover removes the row in leaf_strict, and returns the counter, of a tag whose row of
// leaf_alloc was deleted by hand: Remove drops both. Its options are still in leaf_option.
func (s *Session) takeLeftover(name string) (end sql.Null[int64], err error) {
	if has, err := s.HasTable(strictTable); err != nil || !has {
		return end, err
	}
	err = s.QueryRow(`SELECT max_id FROM leaf_strict WHERE name = $1`+s.ForUpdate, name).Scan(&end)
	if errors.Is(err, sql.ErrNoRows) {
		return sql.Null[int64]{}, nil
	}
	if err != nil {
		return end, err
	}
	options, err := s.optionsOf(name)
	if err == nil {
		err = s.dropStrict(name)
	}
	end.V = options.Used(end.V)
	return end, err
}

// Create inserts a tag and then looks for a deleted one with that name: the insert waits for an
// uncommitted deletion. Then it replaces the options of that one.
func (s *Session) Create(tag segment.Tag) error {
	if err := s.keepsOptions(tag.Options); err != nil {
		return err
	}
	if err := s.checkName(tag); err != nil {
		return err
	}
	start, strict := tag.MaxID, tag.Options.Stockless() != nil
	if strict {
		tag.MaxID = full
	}
	if err := s.Insert(tag); err != nil {
		return err
	}
	end, err := s.formerEnd(tag.Name)
	if err == nil {
		err = s.setOptions(tag.Name, tag.Options)
	}
	if err == nil && end.Valid {
		if again := tag.Options.CheckNewName(end.V); again != nil {
			err = Refusal{again}
		}
	}
	if err == nil && strict {
		return s.createStrict(tag.Name, max(start, end.V))
	}
	if err == nil && end.V > tag.MaxID {
		_, err = s.Change(`UPDATE leaf_alloc SET max_id = $2`+s.Touch+s.one(), tag.Name, end.V)
	}
	return err
}

// checkName refuses a mask for the name of a deleted tag, also one deleted by hand, which leaves its
// row in leaf_strict.
func (s *Session) checkName(tag segment.Tag) error {
	again := tag.Options.CheckNewName(0)
	if again == nil {
		return nil
	}
	if _, err := s.load(tag.Name, ""); !errors.Is(err, leaf.ErrUnknownTag) {
		return cmp.Or(err, error(Refusal{leaf.ErrTagExists}))
	}
	for _, table := range []string{deletedTable, strictTable} {
		has, err := s.HasTable(table)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		var end int64
		err = s.QueryRow(`SELECT max_id FROM `+table+` WHERE name = $1`, tag.Name).Scan(&end)
		if err == nil {
			err = Refusal{again}
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return nil
}

// Remove deletes a tag and keeps its counter.
func (s *Session) Remove(name string) error {
	r, err := s.loadAll(name, s.ForUpdate)
	if err != nil {
		return err
	}
	r.maxID.V = r.options.Used(r.maxID.V)
	if has, err := s.HasTable(deletedTable); err != nil || !has {
		if err == nil {
			err = Refusal{MissingTable{deletedTable, s.DeletedTable}}
		}
		return err
	}
	end, err := s.keptEnd(name)
	switch {
	case err != nil:
	case !end.Valid:
		_, err = s.Change(`INSERT INTO leaf_deleted (name, max_id) VALUES ($1, $2)`, name, max(r.maxID.V, 0))
	case end.V < r.maxID.V:
		_, err = s.Change(`UPDATE leaf_deleted SET max_id = $2 WHERE name = $1`, name, r.maxID.V)
	}
	if err == nil {
		err = cmp.Or(s.mark(deletedTable), s.setOptions(name, nil))
	}
	if err == nil && r.strict {
		err = s.dropStrict(name)
	}
	if err != nil {
		return err
	}
	return s.changeOne(leaf.ErrUnknownTag, `DELETE FROM leaf_alloc`+s.one(), name)
}
