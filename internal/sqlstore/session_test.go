package sqlstore

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPositional(t *testing.T) {
	query, args := Positional(`UPDATE t SET a = $2 WHERE b = $1 AND c = $1 LIMIT $3`, []any{"one", "two", 3})
	if want := `UPDATE t SET a = ? WHERE b = ? AND c = ? LIMIT ?`; query != want {
		t.Errorf("%s, want %s", query, want)
	}
	if diff := cmp.Diff([]any{"two", "one", "one", 3}, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if query, args := Positional(`SELECT 1`, nil); query != `SELECT 1` || len(args) != 0 {
		t.Errorf("%s with %v", query, args)
	}
}

func TestMark(t *testing.T) {
	cause, sentinel := errors.New("cause"), errors.New("sentinel")
	if err := Mark(cause, sentinel); !errors.Is(err, cause) || !errors.Is(err, sentinel) || err.Error() != "cause" {
		t.Errorf("%v: want cause, which is sentinel too", err)
	}
	for _, err := range []error{Alloc.Exists(nil), Alloc.Exists(cause)} {
		if !errors.Is(err, fs.ErrExist) || err.Error() != "the database has a table leaf_alloc already" {
			t.Errorf("%v: want fs.ErrExist", err)
		}
	}
}
