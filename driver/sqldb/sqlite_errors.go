package sqldb

import (
	"errors"
	"fmt"
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

func (d *sqlite) explain(err error) error { return explainSQLite(err) }

// explainSQLite says what is wrong and what to do. It knows SQLite's errors by
// their codes, whichever driver they come from.
func explainSQLite(err error) error {
	var coded interface {
		error
		Code() int
	}
	if !errors.As(err, &coded) {
		return err
	}
	if advice := sqliteAdvice(coded.Code() & 0xff); advice != "" {
		return fmt.Errorf("%s: %w", advice, err)
	}
	return err
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
		return "the database file is damaged: restore it, and raise every counter (leaf tag raise)"
	case sqliteFull:
		return "the disk is full: free some space"
	case sqliteCantOpen:
		return "the database file cannot be opened: check its path and rights, or create it with leaf init --store sqlite:PATH"
	case sqliteNotADB:
		return "the file is not an SQLite database: check its path"
	}
	return ""
}
