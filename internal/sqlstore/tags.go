package sqlstore

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A row is one of leaf_alloc. One of a table made by hand may lack values.
type row struct {
	name          string
	maxID, step   sql.Null[int64]
	options       segment.TagOptions
	updatedMicros sql.Null[int64]
	strict        bool // maxID is that of leaf_strict
}

func (r row) tag() segment.Tag {
	tag := segment.Tag{Name: r.name, MaxID: r.maxID.V, Step: r.step.V, Options: r.options}
	if r.updatedMicros.V > 0 {
		tag.Updated = time.UnixMicro(r.updatedMicros.V)
	}
	return tag
}

// fault reports why nothing can be allocated from the row by its own step.
func (r row) fault() error {
	var err error
	switch {
	case !r.maxID.Valid:
		err = errors.New("the row has no max_id (NULL): set it above every ID in use")
	case r.maxID.V < 0:
		err = fmt.Errorf("the row has the negative max_id %d: set it above every ID in use", r.maxID.V)
	case !r.step.Valid:
		err = errors.New("the row has no step (NULL): set one of at least 1")
	case r.step.V < 1:
		err = fmt.Errorf("the row has step %d: set one of at least 1", r.step.V)
	default:
		return nil
	}
	return Mark(err, segment.ErrDamaged)
}

// amend returns the tag after change, all or nothing. It does not invent a missing max_id.
func (r row) amend(change segment.Change) (segment.Tag, error) {
	if change.MaxID != nil && *change.MaxID < r.maxID.V && !change.Force {
		return segment.Tag{}, fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, r.maxID.V, *change.MaxID)
	}
	if change.MaxID != nil {
		r.maxID = sql.Null[int64]{V: *change.MaxID, Valid: true}
	}
	if change.Step != nil {
		r.step = sql.Null[int64]{V: *change.Step, Valid: true}
	}
	var err error
	if r.options, err = r.options.Change(change.Options); err != nil {
		return segment.Tag{}, err
	}
	return r.tag(), r.fault()
}

// A scanner reads a row by way of [sql.Rows.Scan].
type scanner func(scan func(...any) error) (row, error)

func scanStep(scan func(...any) error) (r row, err error) {
	var name sql.Null[string]
	err = scan(&name, &r.step)
	if err == nil && !name.Valid {
		err = errNull // a key is never NULL
	}
	r.name = name.V
	return r, err
}

func scanRow(scan func(...any) error) (r row, err error) {
	var name sql.Null[string]
	var description string
	err = scan(&name, &r.maxID, &r.step, &description, &r.updatedMicros)
	if err == nil && !name.Valid {
		err = errNull // a key is never NULL
	}
	r.name, r.options = name.V, segment.Describe(description)
	return r, err
}

// errNull reports a NULL that the table forbids.
var errNull = Mark(errors.New("the table is damaged: restore it from a backup, and raise every counter"), segment.ErrStoreDamaged)

func (s *Session) selectTags() string {
	description := "''"
	if s.Description != "" {
		description = s.Description
	}
	return `SELECT biz_tag, max_id, step, ` + description + `, ` + s.Micros + ` FROM leaf_alloc`
}

// one is the condition that a row is that of the tag in parameter 1.
func (s *Session) one() string { return ` WHERE ` + s.equal("biz_tag", "$1") }

// load returns a row; there may be a word about locking it.
func (s *Session) load(name, lock string) (row, error) {
	r, err := scanRow(s.QueryRow(s.selectTags()+s.one()+lock, name).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, Refusal{leaf.ErrUnknownTag}
	}
	if err != nil {
		return row{}, err
	}
	return s.counted(r, lock)
}

// loadAll is load with all options.
func (s *Session) loadAll(name, lock string) (row, error) {
	r, err := s.load(name, lock)
	if err != nil {
		return row{}, err
	}
	others, err := s.optionsOf(name)
	r.options = r.options.With(others)
	return r, err
}

// Step returns the step of a tag.
func (s *Session) Step(name string) (int64, error) {
	r, err := s.load(name, "")
	if err != nil {
		return 0, err
	}
	return r.step.V, r.fault()
}

// NotAdvanced says why an advance of a tag by n, or by its step, found no row that could be moved.
func (s *Session) NotAdvanced(name string, n int64) error {
	r, err := s.load(name, "")
	if err != nil {
		return err
	}
	if r.strict {
		return cmp.Or(s.Stockless(name), error(Refusal{errors.New("the row has changed meanwhile: try again")}))
	}
	if n > 0 {
		r.step = sql.Null[int64]{V: n, Valid: true}
	}
	if err := r.fault(); err != nil {
		return Refusal{err}
	}
	if r.maxID.V > math.MaxInt64-r.step.V {
		return Refusal{fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, r.step.V, r.maxID.V)}
	}
	return Refusal{errors.New("the row has changed meanwhile: try again")}
}

// Tags returns up to limit tags behind the one with the name after, in the order of the column's
// collation. A nil after is before all.
func (s *Session) Tags(after *string, limit int) ([]segment.Tag, error) {
	tags, err := s.page(s.selectTags(), scanRow, after, limit)
	for i, tag := range tags {
		r, failed := s.counted(row{name: tag.Name, maxID: sql.Null[int64]{V: tag.MaxID}}, "")
		tags[i].MaxID, err = r.maxID.V, cmp.Or(err, failed)
	}
	return tags, err
}

// Steps is Tags without the counters and the descriptions.
func (s *Session) Steps(after *string, limit int) ([]segment.Tag, error) {
	return s.page(`SELECT biz_tag, step FROM leaf_alloc`, scanStep, after, limit)
}

func (s *Session) page(query string, scan scanner, after *string, limit int) ([]segment.Tag, error) {
	where, args := ` WHERE biz_tag IS NOT NULL`, []any{int64(limit)}
	if after != nil {
		where, args = ` WHERE biz_tag > $2`, append(args, *after)
	}
	rows, err := s.Query(query+where+` ORDER BY biz_tag LIMIT $1`, args...)
	tags, err := Collect(rows, err, func(dest func(...any) error) (segment.Tag, error) {
		r, err := scan(dest)
		return r.tag(), err
	})
	if err != nil {
		return nil, err
	}
	return tags, s.addOptions(tags)
}

// MaxPage is how many rows are read at once.
const MaxPage = 8192

// Digest returns a hash of all names, steps and options; empty where the database is not told how. It reads
// some rows at a time, as a listing does.
func (s *Session) Digest() (string, error) {
	if s.Joined == "" {
		return "", nil
	}
	query := `SELECT ` + s.Joined + `, max(biz_tag), count(*) FROM (SELECT biz_tag, step FROM leaf_alloc WHERE biz_tag > $2 ORDER BY biz_tag LIMIT $1) AS page`
	hash := sha256.New()
	for after := ""; ; {
		var text, last sql.Null[string]
		var rows int64
		if err := s.QueryRow(query, int64(MaxPage), after).Scan(&text, &last, &rows); err != nil {
			return "", err
		}
		fmt.Fprintln(hash, rows, text.V)
		if rows < MaxPage {
			options, err := s.digestOptions()
			return string(hash.Sum(nil)) + options, err
		}
		after = last.V
	}
}

// Insert adds a tag.
func (s *Session) Insert(tag segment.Tag) error {
	description := tag.Options.Description()
	if err := s.describable(description); err != nil {
		return err
	}
	columns, values, args := `biz_tag, max_id, step, update_time`, `$1, $2, $3, `+s.Now, []any{tag.Name, tag.MaxID, tag.Step}
	if s.Description != "" {
		columns, values, args = columns+`, description`, values+`, $4`, append(args, description)
	}
	return s.changeOne(leaf.ErrTagExists, `INSERT INTO leaf_alloc (`+columns+`) VALUES (`+values+`)`+s.ifAbsent("biz_tag"), args...)
}

// Fill adds the tags of an init.
func (s *Session) Fill(tags []segment.Tag) error {
	for _, tag := range tags {
		if err := s.Insert(tag); err != nil {
			return fmt.Errorf("tag %q: %w", tag.Name, err)
		}
	}
	return nil
}

// describable reports why the table cannot keep a description.
func (s *Session) describable(description string) error {
	if description != "" && s.Description == "" {
		return Refusal{fmt.Errorf("%w: the table leaf_alloc has no column description", leaf.ErrUnsupported)}
	}
	return nil
}

// Alter changes a tag and returns it as it then is.
func (s *Session) Alter(name string, change segment.Change) (segment.Tag, error) {
	if err := s.keepsOptions(change.Options); err != nil {
		return segment.Tag{}, err
	}
	r, err := s.loadAll(name, s.ForUpdate)
	if err != nil {
		return segment.Tag{}, err
	}
	tag, err := r.amend(change)
	if err != nil {
		return segment.Tag{}, Refusal{err}
	}
	stored := tag.MaxID
	if r.strict {
		if err := s.setStrict(name, tag.MaxID); err != nil {
			return segment.Tag{}, err
		}
		stored = full
	}
	set, args := `max_id = $2, step = $3`, []any{name, stored, tag.Step}
	if _, ok := change.Options[segment.OptionDescription]; ok && s.Description != "" {
		set, args = set+`, description = $4`, append(args, tag.Options.Description())
	} else if err := s.describable(tag.Options.Description()); err != nil {
		return segment.Tag{}, err
	}
	// The number of rows says nothing: MySQL does not count a row that stays as it is.
	if _, err := s.Change(`UPDATE leaf_alloc SET `+set+s.Touch+s.one(), args...); err != nil {
		return segment.Tag{}, err
	}
	if len(change.Options) > 0 {
		if err := s.setOptions(name, tag.Options); err != nil {
			return segment.Tag{}, err
		}
	}
	r, err = s.loadAll(name, "")
	return r.tag(), err
}

// GiveBack moves a counter back to start if the last grant was its last write, by the time of that
// write. It leaves a later time than any grant before: tables with times in seconds would otherwise
// accept the give-back of the previous grant too, below the caller's memory. More is a further
// condition on parameter 5; it may be empty.
func (s *Session) GiveBack(tag string, last segment.Grant, start int64, more string, args ...any) error {
	if s.Unversioned != nil {
		return Refusal{s.Unversioned}
	}
	micros, err := strconv.ParseInt(last.Version, 10, 64)
	if err != nil {
		return Refusal{errMovedOn}
	}
	same := s.Micros + ` = $4` + more
	return s.changeOne(errMovedOn, `UPDATE leaf_alloc SET max_id = $2, update_time = `+s.Later+s.one()+` AND max_id = $3 AND (`+same+`)`,
		append([]any{tag, start, last.Range.End, micros}, args...)...)
}

var errMovedOn = errors.New("the counter was written by others since, or by another server, or the tag is gone")
