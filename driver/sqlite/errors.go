package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// The primary result codes of SQLite that this package acts upon.
const (
	codeBusy     = 5
	codeCorrupt  = 11
	codeCantOpen = 14
)

// advice is what to do about a result code.
var advice = map[int]string{
	codeBusy:     "another process holds the database's lock: end a transaction left open there",
	8:            "the database is read-only: check the rights to the file, its -wal and its folder",
	10:           "the disk failed: check the disk and the kernel's log",
	codeCorrupt:  errDamaged.Error(),
	13:           "the disk is full: free some space",
	codeCantOpen: "the database file cannot be opened: check its path, and the rights to it and to its folder",
	26:           "the file is not an SQLite database: check its path",
}

var (
	errReplaced = errors.New("it is not the file that was opened")
	errDamaged  = sqlstore.Mark(errors.New("the database file is damaged: restore it from a backup, and raise every counter"), segment.ErrStoreDamaged)
)

// explain adds a remedy to an error. It knows SQLite's errors by their codes, from any driver. The
// file's name may be empty.
func explain(err error, file string, t table) error {
	code := codeOf(err)
	if code == codeCantOpen && isMissing(file) {
		return fmt.Errorf("%w: %w", t.Absent("there is no file "+file), err)
	}
	if advice := advice[code]; advice != "" {
		err = fmt.Errorf("%s: %w", advice, err)
	}
	if code == codeCorrupt {
		return sqlstore.Mark(err, segment.ErrStoreDamaged)
	}
	return err
}

// codeOf returns the primary result code in err, or 0.
func codeOf(err error) int {
	var coded interface {
		error
		Code() int
	}
	if !errors.As(err, &coded) {
		return 0
	}
	return coded.Code() & 0xff
}

func isMissing(file string) bool {
	if file == "" {
		return false // not known
	}
	_, err := os.Stat(file)
	return errors.Is(err, fs.ErrNotExist)
}
