package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// postgresFacts is what a store needs to know of its server and table.
type postgresFacts struct {
	kind     postgresKind
	settings postgresSettings

	server  string // an expression: which server answers; its value is empty where none may lose what another acknowledged
	commits string // an expression: synchronous_commit, of which "off" is unfit
	standby string // an expression: whether the server repeats what another one writes
}

// A postgresKind is a server that speaks PostgreSQL's protocol.
type postgresKind int

const (
	plainPostgres postgresKind = iota
	cockroach
	yugabyte
)

// agreed reports whether a commit is agreed upon with other servers.
func (k postgresKind) agreed() bool { return k != plainPostgres }

// postgresOldest is the oldest release of PostgreSQL that is supported.
const postgresOldest = 12

// postgresKindOf says what a server is by its version() and server_version_num, and
// why it must not be used.
func postgresKindOf(version, number string) (postgresKind, error) {
	switch {
	case strings.HasPrefix(version, "CockroachDB"):
		return cockroach, nil
	case strings.Contains(version, "-YB-"):
		return yugabyte, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n/10000 < postgresOldest {
		return 0, fmt.Errorf("%w: the server is %q: upgrade it to PostgreSQL %d or newer", leaf.ErrUnsupported, version, postgresOldest)
	}
	return plainPostgres, nil
}

// postgresSettings are those of a server that decide what it may lose.
type postgresSettings struct {
	fsync, fullPageWrites          string
	walLevel, walSenders, archives string
}

// replicable reports whether another server can have a copy of what this one writes,
// whether or not one has at this moment.
func (s postgresSettings) replicable() bool {
	return s.walLevel != "minimal" && (s.walSenders != "0" || s.archives != "off")
}

func (s postgresSettings) synced() bool { return s.fsync == "on" && s.fullPageWrites == "on" }

// forgets reports whether a commit may be lost: with the power, or because another
// server that lacks it takes over.
func (f *postgresFacts) forgets() bool {
	return !f.kind.agreed() && (f.settings.replicable() || !f.settings.synced())
}

// inspect reports why the server and the table must not be used, and learns what
// they are like.
func (d *postgresPool) inspect(ctx context.Context, s *postgresSession) (*postgresFacts, error) {
	facts, err := inspectServer(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := checkPostgresTable(ctx, s, facts, d.table); err != nil {
		return nil, err
	}
	d.logger.Info("postgres "+d.table.Use+" ready", "table", d.table.Name, "commits_agreed", facts.kind.agreed())
	if !facts.kind.agreed() && !facts.settings.synced() {
		d.logger.Warn("a power cut may take back "+d.table.Stake+": set fsync=on and full_page_writes=on on the server",
			"fsync", facts.settings.fsync, "full_page_writes", facts.settings.fullPageWrites)
	}
	if !facts.kind.agreed() && facts.server == noServer {
		d.logger.Warn("a fail-over shows only by a counter that went back: GRANT EXECUTE ON FUNCTION pg_current_wal_lsn, pg_walfile_name(pg_lsn) to the user")
	}
	return facts, nil
}

func inspectServer(ctx context.Context, s *postgresSession) (*postgresFacts, error) {
	var version, number, encoding, readOnly, path string
	err := s.queryRow(ctx, `SELECT version(), COALESCE(current_setting('server_version_num', true), ''),
		COALESCE(current_setting('server_encoding', true), 'UTF8'), COALESCE(current_setting('transaction_read_only', true), 'off'),
		current_setting('search_path')`).
		Scan(&version, &number, &encoding, &readOnly, &path)
	if err == nil {
		err = s.checkSearchPath(path)
	}
	if err != nil {
		return nil, err
	}
	facts := &postgresFacts{server: noServer, commits: `''`, standby: `false`}
	if facts.kind, err = postgresKindOf(version, number); err != nil {
		return nil, err
	}
	if encoding != "UTF8" {
		return nil, fmt.Errorf("%w: the database is encoded in %s: create one with ENCODING 'UTF8' TEMPLATE template0", leaf.ErrUnsupported, encoding)
	}
	if facts.kind == plainPostgres {
		if err := facts.inspectPlain(ctx, s); err != nil {
			return nil, err
		}
	}
	if readOnly != "off" {
		return nil, errors.New("sessions are read-only (default_transaction_read_only): ALTER ROLE or ALTER DATABASE … SET default_transaction_read_only = off, " +
			"or name the primary server in the URL")
	}
	return facts, nil
}

// checkSearchPath reports a schema that was asked for in vain: a pooler may be told to
// ignore it, and then the tables are those of another schema.
func (s *postgresSession) checkSearchPath(path string) error {
	return s.conn.Raw(func(c any) error {
		want, ok := c.(*stdlib.Conn).Conn().Config().RuntimeParams["search_path"]
		if ok && want != path {
			return fmt.Errorf("%w: its search_path is %s, not %s as it was asked for: a pooler ignores that "+
				"(ignore_startup_parameters): ALTER ROLE … SET search_path, and leave it out here", sqlstore.ErrSession, path, want)
		}
		return nil
	})
}

// inspectPlain looks at what only PostgreSQL itself has.
func (f *postgresFacts) inspectPlain(ctx context.Context, s *postgresSession) error {
	f.standby, f.commits = `pg_is_in_recovery()`, `current_setting('synchronous_commit')`
	var standby bool
	var commits string
	err := s.queryRow(ctx, `SELECT pg_is_in_recovery(), current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
			current_setting('wal_level'), current_setting('max_wal_senders'), current_setting('archive_mode')`).
		Scan(&standby, &commits, &f.settings.fsync, &f.settings.fullPageWrites,
			&f.settings.walLevel, &f.settings.walSenders, &f.settings.archives)
	if err != nil {
		return err
	}
	if err := standbyFault(standby); err != nil {
		return err
	}
	if err := commitFault(commits); err != nil {
		return err
	}
	f.server, err = postgresIdentity(ctx, s)
	return err
}

const (
	noServer = `''`

	// A promotion begins a new timeline, which is in the name of each file of the
	// log; a database that was loaded into another server has another identifier.
	postgresTimeline = `substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`
	postgresSystem   = `(SELECT system_identifier::text FROM pg_control_system())`
)

// postgresIdentity returns the best expression for the identity of the server that
// the user may evaluate. All users may, unless somebody took it from them.
func postgresIdentity(ctx context.Context, s *postgresSession) (string, error) {
	for _, expression := range []string{postgresSystem + ` || '/' || ` + postgresTimeline, postgresTimeline} {
		var identity string
		err := s.queryRow(ctx, `SELECT `+expression).Scan(&identity)
		if _, ok := errors.AsType[*pgconn.PgError](err); !ok {
			return expression, err
		}
	}
	return noServer, nil
}

func standbyFault(standby bool) error {
	if standby {
		return errors.New("the server is read-only (a standby): name the primary server in the URL, " +
			"or all servers with target_session_attrs=read-write")
	}
	return nil
}

// commitFault reports a session whose commits a crash of the server may take back.
// It can be set for a role, a database, or one session, behind a pooler also by
// somebody else: that is why the statements that write say what they had.
func commitFault(synchronousCommit string) error {
	if synchronousCommit == "off" {
		return fmt.Errorf("%w: synchronous_commit=off loses acknowledged writes in a crash: "+
			"ALTER ROLE … SET synchronous_commit = on, and set it nowhere else", sqlstore.ErrSession)
	}
	return nil
}
