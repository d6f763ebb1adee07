package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// facts are the properties of a server that a session needs.
type facts struct {
	kind     kind
	settings settings

	server  string // an expression: the answering server; empty if a fail-over loses nothing
	commits string // an expression: synchronous_commit; "off" is unfit
	store   string // an expression: the identity of the store
	standby string // an expression: whether the server repeats what another one writes, as text

	dialect *sqlstore.Dialect // made of these by know
	advance string            // the statement that moves a counter, made of them too
}

// unknown returns the facts before a check of the server.
func unknown() *facts {
	return &facts{server: noServer, store: noIdentity, commits: `''`, standby: `'false'`}
}

// firstLook is how any server is spoken to.
var firstLook = newDialect(unknown())

// A kind is a server that speaks PostgreSQL's protocol.
type kind int

const (
	plain kind = iota
	cockroach
	yugabyte
)

// agreed reports whether a commit is agreed upon with other servers.
func (k kind) agreed() bool { return k != plain }

// oldest is the oldest supported release of PostgreSQL.
const oldest = 12

// kindOf returns the kind of a server by its version() and server_version_num, or refuses it.
func kindOf(version, number string) (kind, error) {
	switch {
	case strings.HasPrefix(version, "CockroachDB"):
		return cockroach, nil
	case strings.Contains(version, "-YB-"):
		return yugabyte, nil
	}
	n, err := strconv.Atoi(number)
	if err != nil || n/10000 < oldest {
		return 0, fmt.Errorf("%w: the server is %q: upgrade it to PostgreSQL %d or newer", leaf.ErrUnsupported, version, oldest)
	}
	return plain, nil
}

// settings are the settings of a server that decide its possible losses.
type settings struct {
	fsync, fullPageWrites          string
	walLevel, walSenders, archives string
}

// currentSettings is an expression for the settings, as a text.
const currentSettings = `concat_ws(' ', current_setting('fsync'), current_setting('full_page_writes'),
	current_setting('wal_level'), current_setting('max_wal_senders'), current_setting('archive_mode'))`

// parseSettings reads currentSettings. Unknown settings may lose commits.
func parseSettings(text string) (s settings) {
	if values := strings.Fields(text); len(values) == 5 {
		s = settings{values[0], values[1], values[2], values[3], values[4]}
	}
	return s
}

// replicable reports whether another server can have a copy of this one's writes, now or later.
func (s settings) replicable() bool {
	return s.walLevel != "minimal" && (s.walSenders != "0" || s.archives != "off")
}

func (s settings) synced() bool { return s.fsync == "on" && s.fullPageWrites == "on" }

// mayLose reports whether a commit may be lost: with the power, or because another
// server that lacks it takes over.
func (s settings) mayLose() bool { return s.replicable() || !s.synced() }

func (f *facts) mayLose() bool { return !f.kind.agreed() && f.settings.mayLose() }

// inspect reports why the server and the table must not be used, and learns what they are like.
func (p *pool) inspect(s *session) (*facts, error) {
	facts, err := inspectServer(s)
	if err != nil {
		return nil, err
	}
	s.know(facts)
	if err := checkTable(s, p.table); err != nil {
		return nil, err
	}
	if p.table.Identified {
		if err := p.identify(s); err != nil {
			return nil, err
		}
	}
	p.logger.Info("postgres "+p.table.Use+" ready", "table", p.table.Name, "commits_agreed", facts.kind.agreed())
	if !facts.kind.agreed() && !facts.settings.synced() {
		p.logger.Warn("a power cut may take back "+p.table.Stake+": set fsync=on and full_page_writes=on on the server",
			"fsync", facts.settings.fsync, "full_page_writes", facts.settings.fullPageWrites)
	}
	if !facts.kind.agreed() && facts.server == noServer {
		p.logger.Warn("a fail-over shows only by a counter that went back: GRANT EXECUTE ON FUNCTION pg_current_wal_lsn, pg_walfile_name(pg_lsn) to the user")
	}
	return facts, nil
}

// identify has the statement that grants read the identity of the store.
func (p *pool) identify(s *session) error {
	// Beside leaf_alloc: servers with other search paths use that one too.
	err := s.QueryRow(`SELECT quote_ident(nspname) || '.leaf_store' FROM pg_catalog.pg_class AS c
		JOIN pg_catalog.pg_namespace AS n ON n.oid = relnamespace WHERE c.oid = to_regclass('leaf_alloc')`).Scan(&s.facts.dialect.StoreTable)
	if err != nil {
		return err
	}
	refused, err := s.Identify(func() error {
		return s.transact(func(tx *session) error {
			if err := tx.lockInits(); err != nil {
				return err
			}
			return tx.CreateIdentity()
		})
	})
	switch {
	case err != nil:
		return err
	case refused != nil:
		p.logger.Warn(sqlstore.NoIdentity+"GRANT CREATE ON SCHEMA to the user, or, if the table is there, GRANT SELECT ON leaf_store", "err", refused)
	default:
		s.facts.store = s.ReadIdentity()
	}
	return nil
}

func inspectServer(s *session) (*facts, error) {
	var version, number, encoding, readOnly, path string
	err := s.QueryRow(`SELECT version(), COALESCE(current_setting('server_version_num', true), ''),
		COALESCE(current_setting('server_encoding', true), 'UTF8'), COALESCE(current_setting('transaction_read_only', true), 'off'),
		current_setting('search_path')`).
		Scan(&version, &number, &encoding, &readOnly, &path)
	if err == nil {
		err = s.checkSearchPath(path)
	}
	if err != nil {
		return nil, err
	}
	facts := unknown()
	if facts.kind, err = kindOf(version, number); err != nil {
		return nil, err
	}
	if encoding != "UTF8" {
		return nil, fmt.Errorf("%w: the database is encoded in %s: create one with ENCODING 'UTF8' TEMPLATE template0", leaf.ErrUnsupported, encoding)
	}
	if facts.kind == plain {
		if _, err := facts.inspectPlain(s, noServer); err != nil {
			return nil, err
		}
		if facts.server, err = identity(s); err != nil {
			return nil, err
		}
	}
	if readOnly != "off" {
		return nil, errors.New("sessions are read-only (default_transaction_read_only): ALTER ROLE or ALTER DATABASE … SET default_transaction_read_only = off, " +
			"or name the primary server in the URL")
	}
	return facts, nil
}

// checkSearchPath reports an ignored search_path: a pooler may drop it, and then the tables are
// those of another schema.
func (s *session) checkSearchPath(path string) error {
	return s.conn.Raw(func(c any) error {
		want, ok := c.(*stdlib.Conn).Conn().Config().RuntimeParams["search_path"]
		if ok && want != path {
			return fmt.Errorf("%w: its search_path is %s, not %s as it was asked for: a pooler ignores that "+
				"(ignore_startup_parameters): ALTER ROLE … SET search_path, and leave it out here", sqlstore.ErrSession, path, want)
		}
		return nil
	})
}

// inspectPlain looks at what only PostgreSQL itself has, and returns the value of an expression, a
// text, of the same moment; a standby may lack it.
func (f *facts) inspectPlain(s *session, expression string) (value string, err error) {
	f.standby, f.commits = `pg_is_in_recovery()::text`, `current_setting('synchronous_commit')`
	var standby, commits, settings string
	err = s.QueryRow(`SELECT pg_is_in_recovery()::text, current_setting('synchronous_commit'), `+currentSettings+`,
			CASE WHEN pg_is_in_recovery() THEN '' ELSE `+expression+` END`).
		Scan(&standby, &commits, &settings, &value)
	if err != nil {
		return "", err
	}
	f.settings = parseSettings(settings)
	return value, cmp.Or(standbyFault(standby), commitFault(commits))
}

const (
	noServer   = `''`
	noIdentity = `''`

	// A promotion begins a new timeline, whose number is in the name of each log file. A dump that
	// was loaded into another server has another system identifier.
	timeline = `substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`
	started  = `(EXTRACT(EPOCH FROM pg_postmaster_start_time()) * 1000000)::bigint::text`
	system   = `(SELECT system_identifier::text FROM pg_control_system())`
)

// identity returns the best expression for the identity of the server that
// the user may evaluate. All users may, unless the right was taken from them. An error that
// may be gone the next time is no reason to do without.
func identity(s *session) (string, error) {
	for _, expression := range []string{system + ` || '/' || ` + timeline, timeline} {
		var identity string
		err := s.QueryRow(`SELECT ` + expression).Scan(&identity)
		if !isCode(err, codePrivilege, codeNoFunction, codeUnsupported) {
			return expression, err
		}
	}
	return noServer, nil
}

func standbyFault(standby string) error {
	if standby == "true" {
		return errors.New("the server is read-only (a standby): name the primary server in the URL, " +
			"or all servers with target_session_attrs=read-write")
	}
	return nil
}

// commitFault reports a session whose commits a crash of the server may take back. A role, a
// database or one session may set that, behind a pooler also another user. So each statement that
// writes returns its setting.
func commitFault(synchronousCommit string) error {
	if synchronousCommit == "off" {
		return fmt.Errorf("%w: synchronous_commit=off loses acknowledged writes in a crash: "+
			"ALTER ROLE … SET synchronous_commit = on, and set it nowhere else", sqlstore.ErrSession)
	}
	return nil
}
