package sqlstore

import (
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/leaf-id/leaf/segment"
)

// The table leaf_option keeps the options of tags as one JSON object per tag, without the
// description: leaf_alloc has a column for that. Older releases do not know the table, so their
// deletions leave a row behind. Creating a tag removes such a row.

// optionsOf returns the options of a tag in leaf_option.
func (s *Session) optionsOf(name string) (segment.TagOptions, error) {
	if has, err := s.HasTable(optionTable); err != nil || !has {
		return nil, err
	}
	var text string
	err := s.QueryRow(`SELECT options FROM leaf_option WHERE name = $1`, name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseOptions(name, text)
}

func parseOptions(name, text string) (o segment.TagOptions, err error) {
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return nil, Mark(fmt.Errorf("the options of tag %q in leaf_option are malformed: %w", name, err), segment.ErrDamaged)
	}
	return o, nil
}

// eachOption calls do with rows of leaf_option, by name.
func (s *Session) eachOption(where string, args []any, do func(name, text string) error) error {
	if has, err := s.HasTable(optionTable); err != nil || !has {
		return err
	}
	rows, err := s.Query(`SELECT name, options FROM leaf_option`+where+` ORDER BY name`, args...)
	_, err = Collect(rows, err, func(scan func(...any) error) (none struct{}, err error) {
		var name, text string
		if err = scan(&name, &text); err == nil {
			err = do(name, text)
		}
		return none, err
	})
	return err
}

// addOptions adds the options of tags. It reads the rows between the first name and the last one, by
// their bytes, as leaf_option orders them.
func (s *Session) addOptions(tags []segment.Tag) error {
	if len(tags) == 0 {
		return nil
	}
	index := make(map[string]int, len(tags))
	first, last := tags[0].Name, tags[0].Name
	for i, tag := range tags {
		index[tag.Name] = i
		first, last = min(first, tag.Name), max(last, tag.Name)
	}
	return s.eachOption(` WHERE name BETWEEN $1 AND $2`, []any{first, last}, func(name, text string) error {
		i, ok := index[name]
		if !ok {
			return nil
		}
		others, err := parseOptions(name, text)
		tags[i].Options = tags[i].Options.With(others)
		return err
	})
}

// digestOptions returns a hash of leaf_option.
func (s *Session) digestOptions() (string, error) {
	hash := sha256.New()
	err := s.eachOption("", nil, func(name, text string) error {
		_, err := io.WriteString(hash, name+"\x00"+text+"\x00")
		return err
	})
	return string(hash.Sum(nil)), err
}

// keepsOptions reports that the database cannot keep these options yet. A call asks before its first
// change.
func (s *Session) keepsOptions(o segment.TagOptions) error {
	if o.Others() == nil {
		return nil
	}
	has, err := s.HasTable(optionTable)
	if err == nil && !has {
		return Refusal{MissingTable{optionTable, s.OptionTable}}
	}
	if err != nil || o.Stockless() == nil {
		return err
	}
	has, err = s.HasTable(strictTable)
	if err == nil && !has {
		err = Refusal{MissingTable{strictTable, s.StrictTable}}
	}
	return err
}

// setOptions replaces the row of a tag in leaf_option. The transaction holds the lock on the tag.
func (s *Session) setOptions(name string, o segment.TagOptions) error {
	o = o.Others()
	if has, err := s.HasTable(optionTable); err != nil || !has {
		return err
	}
	if _, err := s.Change(`DELETE FROM leaf_option WHERE name = $1`, name); err != nil || len(o) == 0 {
		return err
	}
	text, err := json.Marshal(o)
	if err == nil {
		_, err = s.Change(`INSERT INTO leaf_option (name, options) VALUES ($1, $2)`, name, string(text))
	}
	if err != nil {
		return err
	}
	return s.mark(optionTable)
}

// Tables that Leaf adds next to leaf_alloc when it first needs them.
const (
	deletedTable = "leaf_deleted"
	optionTable  = "leaf_option"
	strictTable  = "leaf_strict"
)

// mark tells users who may not read a table that it has rows. A store without leaf_store has no place
// for that.
func (s *Session) mark(table string) error {
	if s.Mark == "" {
		return nil
	}
	has, err := s.HasTable(s.storeTable())
	if err == nil && has {
		_, err = s.Change(s.Mark, map[string]int{optionTable: 2, deletedTable: 3, strictTable: 4}[table], table)
	}
	return err
}

// A MissingTable is a database without a table that a call needs.
type MissingTable struct {
	Name   string
	create string // the statement that creates it, unless it is there
}

func (m MissingTable) Error() string { return "the database has no table " + m.Name }

// CreateTable creates the table.
func (s *Session) CreateTable(m MissingTable) error {
	if _, err := s.On.ExecContext(s.Context, m.create); err != nil {
		return fmt.Errorf("the call needs the table %s, which cannot be created: let another user run %q: %w", m.Name, m.create, err)
	}
	return nil
}
