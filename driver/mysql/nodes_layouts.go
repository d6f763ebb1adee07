package mysql

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/worker"
)

// The table leaf_layout keeps what each layout name means for the starts in WORKER_NODE, which
// has no place for it: other bits under the same name would make the same IDs under other worker
// IDs. A row is never changed.
const createLayouts = `CREATE TABLE IF NOT EXISTS leaf_layout (name VARBINARY(255) NOT NULL PRIMARY KEY, ` +
	`layout VARBINARY(1024) NOT NULL, worker BIGINT NOT NULL) ENGINE=InnoDB`

// layoutOwner names the process that recorded a layout, for people.
const layoutOwner = "a start in WORKER_NODE"

// layouts returns the recorded layouts, by the worker IDs of the starts that recorded them.
func (r nodeRows) layouts(ctx context.Context) (records []worker.Record, err error) {
	err = r.Do(ctx, func(s *sqlstore.Session) error {
		records = nil
		if has, err := s.HasTable("leaf_layout"); err != nil || !has {
			return err
		}
		rows, err := s.Query(`SELECT layout, worker FROM leaf_layout ORDER BY worker, name`)
		_, err = sqlstore.Collect(rows, err, func(scan func(...any) error) (struct{}, error) {
			var text []byte
			var id int64
			var l worker.ServedLayout
			if err := scan(&text, &id); err != nil {
				return struct{}{}, err
			}
			if err := json.Unmarshal(text, &l); err != nil {
				return struct{}{}, fmt.Errorf("read the layouts in leaf_layout: %w", err)
			}
			if i := len(records) - 1; i >= 0 && records[i].Worker == id {
				records[i].Layouts = append(records[i].Layouts, l)
			} else {
				records = append(records, worker.Record{Worker: id, Owner: layoutOwner, Layouts: []worker.ServedLayout{l}})
			}
			return struct{}{}, nil
		})
		return err
	})
	return records, err
}

// keep records the layouts of a start. If a name has other values, it records nothing and returns a
// [worker.LayoutError].
func (r nodeRows) keep(ctx context.Context, id int64, layouts []worker.ServedLayout) error {
	if err := r.Do(ctx, createMissing); err != nil {
		return err
	}
	layouts = slices.Clone(layouts)
	slices.SortFunc(layouts, func(a, b worker.ServedLayout) int { return cmp.Compare(a.Name, b.Name) })
	return r.Transact(ctx, func(s *sqlstore.Session) error {
		for _, ours := range layouts {
			if err := keepLayout(s, id, ours); err != nil {
				return err
			}
		}
		return nil
	})
}

func createMissing(s *sqlstore.Session) error {
	if has, err := s.HasTable("leaf_layout"); err != nil || has {
		return err
	}
	if _, err := s.On.ExecContext(s.Context, createLayouts); err != nil {
		return fmt.Errorf("the table leaf_layout keeps what layout names mean, and cannot be created; let another user run %q: %w", createLayouts, err)
	}
	return nil
}

// keepLayout inserts first: of two concurrent starts the second one waits for the first, and then
// reads its committed row.
func keepLayout(s *sqlstore.Session, id int64, ours worker.ServedLayout) error {
	text, err := json.Marshal(ours)
	if err != nil {
		return err
	}
	if _, err := s.On.ExecContext(s.Context, `INSERT INTO leaf_layout (name, layout, worker) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE name = name`,
		[]byte(ours.Name), text, id); err != nil {
		return err
	}
	var by int64
	if err := s.QueryRow(`SELECT layout, worker FROM leaf_layout WHERE name = $1`+s.ForUpdate, []byte(ours.Name)).Scan(&text, &by); err != nil {
		return err
	}
	var theirs worker.ServedLayout
	if err := json.Unmarshal(text, &theirs); err != nil {
		return fmt.Errorf("read layout %q in leaf_layout: %w", ours.Name, err)
	}
	if theirs != ours {
		return &worker.LayoutError{Ours: ours, Theirs: theirs, Worker: by, Owner: layoutOwner}
	}
	return nil
}
