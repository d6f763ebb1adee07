package mysql_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A plain DSN is enough, and further parameters stay.
func TestOpenMySQLDB(t *testing.T) {
	for name, params := range map[string]string{
		"plain": "", "another mode": "?sql_mode=%27ANSI_QUOTES%27", "spoilt": "?charset=latin1&autocommit=0&completion_type=1&sql_mode=%27%27&multiStatements=false",
	} {
		t.Run(name, func(t *testing.T) {
			plain, _, _ := strings.Cut(mariadb.DSN(mariadb.NewDatabase(t)), "?")
			db, err := mysql.OpenDB(plain + params)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := initStore(t.Context(), db, []segment.Tag{order}); err != nil {
				t.Fatal(err)
			}
			if err := initRegistry(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			buffer := segment.NewBuffer(openMySQL(t, db), "order", nil)
			if id, err := buffer.Next(t.Context()); err != nil || id != 1 {
				t.Errorf("got %d, %v", id, err)
			}
			if err := buffer.Close(t.Context()); err != nil {
				t.Error(err)
			}
			r, err := registryOn(db, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if _, err := r.Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1}); err != nil {
				t.Error(err)
			}
			var mode string
			if err := db.QueryRow("SELECT @@sql_mode").Scan(&mode); err != nil || name == "another mode" && !strings.Contains(mode, "ANSI_QUOTES") {
				t.Errorf("sql_mode %s, %v", mode, err)
			}
		})
	}
}

func TestOpenMySQLDBRefuses(t *testing.T) {
	for dsn, want := range map[string]string{
		"root@tcp(127.0.0.1:3306)/": "names no database", "mysql://root@127.0.0.1/ids": "", "": "names no database",
	} {
		if _, err := mysql.OpenDB(dsn); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", dsn, err)
		}
	}
}
