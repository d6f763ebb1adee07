package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

func TestPostgresKindOf(t *testing.T) {
	tests := []struct {
		version, number string
		want            kind
		refused         bool
	}{
		{"PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu", "150014", plain, false},
		{"PostgreSQL 12.0", "120000", plain, false},
		{"PostgreSQL 11.22", "110022", 0, true},
		{"PostgreSQL 8.0.2 on i686-pc-linux-gnu, Redshift 1.0.77", "80002", 0, true},
		{"PostgreSQL 17devel", "", 0, true},
		{"PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu", "110002", yugabyte, false},
		{"CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu)", "130000", cockroach, false},
	}
	for _, tt := range tests {
		got, err := kindOf(tt.version, tt.number)
		if got != tt.want || (err != nil) != tt.refused {
			t.Errorf("%s: %v, %v", tt.version, got, err)
		}
		if err != nil && (!errors.Is(err, leaf.ErrUnsupported) || !strings.Contains(err.Error(), "PostgreSQL 12 or newer")) {
			t.Errorf("%s: %v", tt.version, err)
		}
	}
}

func TestMayLose(t *testing.T) {
	synced := settings{fsync: "on", fullPageWrites: "on", walLevel: "minimal", walSenders: "0", archives: "off"}
	with := func(edit func(*settings)) settings {
		s := synced
		edit(&s)
		return s
	}
	tests := map[string]struct {
		facts facts
		want  bool
	}{
		"alone, synced":     {facts{settings: synced}, false},
		"not synced":        {facts{settings: with(func(s *settings) { s.fsync = "off" })}, true},
		"torn pages":        {facts{settings: with(func(s *settings) { s.fullPageWrites = "off" })}, true},
		"may have standbys": {facts{settings: with(func(s *settings) { s.walLevel, s.walSenders = "replica", "10" })}, true},
		"archives":          {facts{settings: with(func(s *settings) { s.walLevel, s.archives = "replica", "on" })}, true},
		"no replicas":       {facts{settings: with(func(s *settings) { s.walLevel = "replica" })}, false},
		"not known":         {facts{}, true},
		"cockroach":         {facts{kind: cockroach}, false},
		"yugabyte":          {facts{kind: yugabyte}, false},
	}
	for name, tt := range tests {
		if got := tt.facts.mayLose(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPostgresAdviceOf(t *testing.T) {
	for code, want := range map[string]string{
		"40003": "does not know whether", "40001": "nothing was written", "53300": "max_connections", "57P03": "starting or stopping",
		"25006": "name the primary", "08P01": "ignore_startup_parameters", "22P05": "cannot hold it",
	} {
		if err := explain(&pgconn.PgError{Code: code}, &allocTable); !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", code, err, want)
		}
	}
	for _, constraint := range []string{"pg_type_typname_nsp_index", "leaf_alloc_pkey"} {
		err := explain(&pgconn.PgError{Code: "23505", ConstraintName: constraint}, &allocTable)
		if want := strings.HasPrefix(constraint, "leaf"); errors.Is(err, leaf.ErrTagExists) != want {
			t.Errorf("%s: %v", constraint, err)
		}
	}
}

// The store repeats a statement only if the server says that it undid it.
func TestRepeat(t *testing.T) {
	tests := map[string]struct {
		err  error
		want int // calls
	}{
		"serialization":   {&pgconn.PgError{Code: "40001"}, 4},
		"deadlock":        {&pgconn.PgError{Code: "40P01"}, 4},
		"outcome unknown": {&pgconn.PgError{Code: "40003"}, 1},
		"shut down":       {&pgconn.PgError{Code: "57P01"}, 1},
		"network":         {errors.New("broken pipe"), 1},
	}
	for name, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			err := sqlstore.Repeat(t.Context(), undone, func() error {
				if calls++; calls == 4 {
					return nil
				}
				return tt.err
			})
			if calls != tt.want || (err == nil) != (tt.want == 4) {
				t.Errorf("%s: %d calls, %v, want %d", name, calls, err, tt.want)
			}
		})
	}
}

func TestRepeatEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		calls := 0
		err := sqlstore.Repeat(ctx, undone, func() error { calls++; return &pgconn.PgError{Code: "40001"} })
		if !errors.Is(err, context.DeadlineExceeded) || !isCode(err, "40001") || calls < 5 || calls > 500 {
			t.Errorf("%d calls, %v", calls, err)
		}
	})
}
