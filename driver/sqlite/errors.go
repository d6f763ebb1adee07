package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// The primary result codes of SQLite that people can do something about.
const (
	sqliteBusy     = 5
	sqliteReadOnly = 8
	sqliteIOError  = 10
	sqliteCorrupt  = 11
	sqliteFull     = 13
	sqliteCantOpen = 14
	sqliteNotADB   = 26
)

var (
	errReplaced = errors.New("it is not the file that was opened")
	errDamaged  = errors.New(damaged)
)

const damaged = "the database file is damaged: restore it from a backup, and raise every counter (leaf tag raise)"

func (d *sqlite) Explain(err error) error { return explainSQLite(err, d.writer.file, allocTable()) }

// explainSQLite says what is wrong and what to do. It knows SQLite's errors by
// their codes, whichever driver they come from. The file's name may be empty.
func explainSQLite(err error, file string, t table) error {
	code := sqliteCode(err)
	if code == sqliteCantOpen && isMissing(file) {
		return fmt.Errorf("%w: %w", t.Absent("there is no file "+file, "sqlite:PATH"), err)
	}
	if advice := sqliteAdvice(code); advice != "" {
		return fmt.Errorf("%s: %w", advice, err)
	}
	return err
}

// sqliteCode returns the primary result code in err, 0 if there is none.
func sqliteCode(err error) int {
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

func sqliteAdvice(code int) string {
	switch code {
	case sqliteBusy:
		return "another process holds the database's lock: end a transaction left open there"
	case sqliteReadOnly:
		return "the database is read-only: check the rights to the file, its -wal and its folder"
	case sqliteIOError:
		return "the disk failed: check the disk and the kernel's log"
	case sqliteCorrupt:
		return damaged
	case sqliteFull:
		return "the disk is full: free some space"
	case sqliteCantOpen:
		return "the database file cannot be opened: check its path, and the rights to it and to its folder"
	case sqliteNotADB:
		return "the file is not an SQLite database: check its path"
	}
	return ""
}
