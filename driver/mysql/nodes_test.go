package mysql_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Most rules of package drivertest do not fit Nodes: its cells are those of one process,
// and the one that may be written is known only after Assign. What must hold instead is
// in this file: a row and an ID for each start, and for the cell of that ID the
// compare-and-swap of whole records.

// A nodeBed is a database without WORKER_NODE.
type nodeBed struct{ db *sql.DB }

func newNodeBed(t testing.TB) nodeBed {
	return nodeBed{mysqlDB(t, mysqlConfig(t, mariadb, mariadb.NewDatabase(t)))}
}

func (b nodeBed) init(t testing.TB) error { return initNodes(t.Context(), b.db) }

func initNodes(ctx context.Context, db *sql.DB) error {
	n, err := mysql.NewNodes(db, nil)
	if err != nil {
		return err
	}
	return n.Init(ctx)
}

func (b nodeBed) exists(t testing.TB) (bool, error) { return b.start(t, nil).Exists(t.Context()) }

// start is one start of a process.
func (b nodeBed) start(t testing.TB, edit func(*mysql.NodesOptions)) *mysql.Nodes {
	t.Helper()
	o := &mysql.NodesOptions{Node: mysql.Node{Host: "10.0.0.7", Port: "1700000000000-42"}}
	if edit != nil {
		edit(o)
	}
	n, err := mysql.NewNodes(b.db, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestNodesAssign(t *testing.T) {
	drivertest.TestAssigner(t, func(t testing.TB) drivertest.RegistryBackend {
		b := newNodeBed(t)
		if err := b.init(t); err != nil {
			t.Fatal(err)
		}
		return drivertest.RegistryBackend{Open: func(t testing.TB) worker.Registry { return b.start(t, nil) }}
	})
}

func (b nodeBed) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := b.db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
}

// ids returns the IDs of all rows.
func (b nodeBed) ids(t testing.TB) []int64 {
	t.Helper()
	rows, err := b.db.Query("SELECT ID FROM WORKER_NODE ORDER BY ID")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	ids := []int64{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

func (b nodeBed) wantIDs(t testing.TB, want ...int64) {
	t.Helper()
	if got := b.ids(t); !slices.Equal(got, want) {
		t.Errorf("rows %v, want %v", got, want)
	}
}

func (b nodeBed) mustInit(t testing.TB) {
	t.Helper()
	if err := b.init(t); err != nil {
		t.Fatal(err)
	}
}

func wantAssigned(t testing.TB, n *mysql.Nodes, want int64) {
	t.Helper()
	if got, err := n.Assign(t.Context(), 1000); got != want || err != nil {
		t.Errorf("Assign: %d, %v, want %d", got, err, want)
	}
}

const row = `INSERT INTO WORKER_NODE (ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)
	VALUES (%d, '10.1.1.1', '8080', 1, '2020-02-29', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)`

func TestNodesAddOneRowForEachStart(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	first := b.start(t, nil)
	for range 3 {
		wantAssigned(t, first, 1)
	}
	b.wantIDs(t, 1)
	second := b.start(t, func(o *mysql.NodesOptions) { o.Node = mysql.Node{Host: "fe80::1", Port: "80", Container: true} })
	wantAssigned(t, second, 2)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	wantAssigned(t, b.start(t, nil), 3) // never a used one
	starts, err := second.Starts(t.Context(), 2)
	today := time.Now().Format(time.DateOnly)
	want := []worker.Start{
		{Worker: 3, Host: "10.0.0.7", Port: "1700000000000-42", Kind: "actual", Date: today},
		{Worker: 2, Host: "fe80::1", Port: "80", Kind: "container", Date: today},
	}
	if diff := cmp.Diff(want, starts); err != nil || diff != "" {
		t.Errorf("Starts: %v\n%s", err, diff)
	}
	if got, want := second.Supply(), (worker.Supply{Used: 3, Max: 1000}); got != want || got.Left() != 997 {
		t.Errorf("Supply %+v with %d left, want %+v", got, got.Left(), want)
	}
	var kinds, dated, timed int
	err = b.db.QueryRow("SELECT SUM(TYPE), COUNT(LAUNCH_DATE), COUNT(CASE WHEN MODIFIED = CREATED THEN 1 END) FROM WORKER_NODE").Scan(&kinds, &dated, &timed)
	if err != nil || kinds != 2+1+2 || dated != 3 || timed != 3 {
		t.Errorf("types %d, dates %d, times %d, %v", kinds, dated, timed, err)
	}
}

func TestNodesStartingAtOnceGetDifferentIDs(t *testing.T) {
	const starts = 24
	b := newNodeBed(t)
	b.mustInit(t)
	ids := make([]int64, starts)
	var wg sync.WaitGroup
	for i := range ids {
		n := b.start(t, nil)
		wg.Go(func() {
			var err error
			if ids[i], err = n.Assign(t.Context(), 1000); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	b.wantIDs(t, ids...)
	if len(slices.Compact(ids)) != starts {
		t.Errorf("of %d starts some have one ID: %v", starts, ids)
	}
}

// The IDs of deleted rows stay used.
func TestNodesNeverUseAnIDAgain(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	wantAssigned(t, b.start(t, nil), 1)
	wantAssigned(t, b.start(t, nil), 2)
	b.exec(t, "DELETE FROM WORKER_NODE")
	wantAssigned(t, b.start(t, nil), 3)
}

// Calls of one process at once are one start.
func TestNodesAssignAtOnce(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	n := b.start(t, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { wantAssigned(t, n, 1) })
	}
	wg.Wait()
	b.wantIDs(t, 1)
}

func TestNodesInit(t *testing.T) {
	b := newNodeBed(t)
	if ok, err := b.exists(t); ok || err != nil {
		t.Errorf("exists before init: %v, %v", ok, err)
	}
	n := b.start(t, nil)
	_, assignErr := n.Assign(t.Context(), 1000)
	_, clockErr := n.Clock(t.Context())
	_, startsErr := n.Starts(t.Context(), 1)
	for _, err := range []error{assignErr, clockErr, startsErr} {
		if !errors.Is(err, worker.ErrNotCreated) {
			t.Errorf("without the table: %v", err)
		}
	}
	b.mustInit(t)
	if ok, err := b.exists(t); !ok || err != nil {
		t.Errorf("exists after init: %v, %v", ok, err)
	}
	wantAssigned(t, n, 1)
	if err := b.init(t); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second init: %v, want fs.ErrExist", err)
	}
	b.wantIDs(t, 1)
}

func TestNodesUsedUp(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	b.exec(t, fmt.Sprintf(row, 6))
	wantUsedUp := func(n *mysql.Nodes, limit, dealt int64) {
		t.Helper()
		id, err := n.Assign(t.Context(), limit)
		text := fmt.Sprintf("has dealt worker ID %d, and the layout has %d starts", dealt, limit)
		if !errors.Is(err, leaf.ErrOverflow) || !errors.Is(err, worker.ErrUsedUp) || !strings.Contains(err.Error(), text) {
			t.Errorf("Assign below %d: %d, %v", limit, id, err)
		}
	}
	n := b.start(t, nil)
	wantUsedUp(n, 6, 6)
	b.wantIDs(t, 6) // a refused start uses no ID
	wantAssigned(t, n, 7)
	wantUsedUp(n, 5, 7) // the layouts of this process shrank
	b.wantIDs(t, 6, 7)
}

// IDs that jump, as a cluster's do, may skip the layout's last one.
func TestNodesJumpOverTheEnd(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	b.exec(t, "ALTER TABLE WORKER_NODE AUTO_INCREMENT = 50")
	n := b.start(t, nil)
	for range 3 {
		if id, err := n.Assign(t.Context(), 49); !errors.Is(err, leaf.ErrOverflow) {
			t.Errorf("Assign: %d, %v, want ErrOverflow", id, err)
		}
	}
	b.wantIDs(t, 50) // one row, for any number of calls
}

func TestNodesWarnWhenFewAreLeft(t *testing.T) {
	tests := map[string]struct {
		highest int64
		want    int
	}{"plenty": {898, 0}, "few": {899, 1}, "the last": {998, 1}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newNodeBed(t)
			b.mustInit(t)
			b.exec(t, fmt.Sprintf(row, tt.highest))
			log := new(bytes.Buffer)
			n := b.start(t, func(o *mysql.NodesOptions) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
			for range 3 {
				wantAssigned(t, n, tt.highest+1)
				if _, err := n.Clock(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if got := strings.Count(log.String(), "few worker IDs are left"); got != tt.want {
				t.Errorf("warned %d times, want %d:\n%s", got, tt.want, log)
			}
		})
	}
}

// A started process hears of the starts of others with the time.
func TestNodesSupplyGrows(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	n := b.start(t, nil)
	wantAssigned(t, n, 1)
	wantAssigned(t, b.start(t, nil), 2)
	if _, err := n.Clock(t.Context()); err != nil || n.Supply().Used != 2 {
		t.Errorf("Supply %+v, %v", n.Supply(), err)
	}
}

// marks is a memory of worker IDs.
type marks map[string]segment.Mark

func (m marks) Recall(string) map[string]segment.Mark { return m }
func (m marks) Forget(string) error                   { return nil }
func (m marks) Remember(_, source string, mark segment.Mark) error {
	m[source] = mark
	return nil
}

func TestNodesNoticeLostRows(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	memory := marks{}
	remembering := func(o *mysql.NodesOptions) { o.Memory = memory }
	wantAssigned(t, b.start(t, remembering), 1)
	wantAssigned(t, b.start(t, remembering), 2)
	b.exec(t, "DROP TABLE WORKER_NODE")
	b.mustInit(t)
	n := b.start(t, remembering)
	for range 2 {
		if id, err := n.Assign(t.Context(), 1000); !errors.Is(err, leaf.ErrRegression) || !strings.Contains(err.Error(), "dealt worker ID 2") {
			t.Errorf("Assign: %d, %v, want ErrRegression", id, err)
		}
	}
	b.wantIDs(t)
	wantAssigned(t, b.start(t, nil), 1) // who remembers nothing cannot notice
	// The documented remedy.
	b.exec(t, "INSERT INTO WORKER_NODE VALUES (50, 'lifted', '0', 2, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)")
	wantAssigned(t, n, 51)
}

var mysqlTime = regexp.MustCompile(`^\d{4}-`)

// The table that uid-generator's own script makes, and what its own processes have put in.
const baiduTable = `CREATE TABLE WORKER_NODE
(
ID BIGINT NOT NULL AUTO_INCREMENT COMMENT 'auto increment id',
HOST_NAME VARCHAR(64) NOT NULL COMMENT 'host name',
PORT VARCHAR(64) NOT NULL COMMENT 'port',
TYPE INT NOT NULL COMMENT 'node type: ACTUAL or CONTAINER',
LAUNCH_DATE DATE NOT NULL COMMENT 'launch date',
MODIFIED TIMESTAMP NOT NULL COMMENT 'modified time',
CREATED TIMESTAMP NOT NULL COMMENT 'created time',
PRIMARY KEY(ID)
)
 COMMENT='DB WorkerID Assigner for UID Generator',ENGINE = INNODB`

const baiduInsert = `INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED) VALUES ('10.9.8.7', '1600000000000-1', 2, '2020-09-13', NOW(), NOW())`

func TestNodesInBaidusTable(t *testing.T) {
	for name, mode := range map[string][]string{
		"as old servers take it": {"SET sql_mode = ''", "SET explicit_defaults_for_timestamp = 0"},
		"as new servers take it": {"SET sql_mode = ''", "SET explicit_defaults_for_timestamp = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			database := mariadb.NewDatabase(t)
			mariadb.Exec(t, database, slices.Concat(mode, []string{baiduTable, baiduInsert, baiduInsert})...)
			cfg := mysqlConfig(t, mariadb, database)
			cfg.Params["sql_mode"] = "'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'"
			b := nodeBed{db: mysqlDB(t, cfg)}
			n := b.start(t, nil)
			wantAssigned(t, n, 3)
			mariadb.Exec(t, database, baiduInsert) // a process of uid-generator in between
			wantAssigned(t, b.start(t, nil), 5)
			starts, err := n.Starts(t.Context(), 100)
			if err != nil || len(starts) != 5 || starts[1] != (worker.Start{Worker: 4, Host: "10.9.8.7", Port: "1600000000000-1", Kind: "actual", Date: "2020-09-13"}) {
				t.Errorf("Starts: %+v, %v", starts, err)
			}
			var modified, created string
			err = b.db.QueryRow("SELECT CONCAT(MODIFIED), CONCAT(CREATED) FROM WORKER_NODE WHERE ID = 3").Scan(&modified, &created)
			if err != nil || modified != created || !mysqlTime.MatchString(modified) || strings.HasPrefix(modified, "0000") {
				t.Errorf("times %s, %s, %v", modified, created, err)
			}
		})
	}
}

// The cell of the own worker ID is one of a registry, in this process alone.
func TestNodesCell(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	n := b.start(t, nil)
	zero, held := worker.Record{Worker: 1}, worker.Record{Worker: 1, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(5)}
	if _, err := n.Swap(t.Context(), zero, held); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("before Assign: %v, want ErrInvalid", err)
	}
	wantAssigned(t, n, 1)
	want := func(r worker.Record, list ...worker.Record) {
		t.Helper()
		got, err := n.Load(t.Context(), 1)
		all, listErr := n.List(t.Context())
		if diff := cmp.Diff(r, got) + cmp.Diff(list, all); err != nil || listErr != nil || diff != "" {
			t.Errorf("%v, %v\n%s", err, listErr, diff)
		}
	}
	want(zero)
	if _, err := n.Swap(t.Context(), zero, held); err != nil {
		t.Fatal(err)
	}
	want(held, held)
	later := held
	later.Horizon = time.UnixMilli(9)
	for _, old := range []worker.Record{zero, later, {Worker: 1, Instance: held.Instance, Term: 2, Horizon: time.UnixMilli(5)}} {
		if _, err := n.Swap(t.Context(), old, later); !errors.Is(err, worker.ErrConflict) {
			t.Errorf("swap of %+v: %v, want ErrConflict", old, err)
		}
	}
	if _, err := n.Swap(t.Context(), worker.Record{Worker: 2}, worker.Record{Worker: 2, Term: 1}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("another's: %v, want ErrInvalid", err)
	}
	want(held, held)
	if r, err := n.Load(t.Context(), 2); !r.IsZero() || r.Worker != 2 || err != nil {
		t.Errorf("another's: %+v, %v", r, err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Swap(t.Context(), held, later); !errors.Is(err, leaf.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := n.Clock(t.Context()); !errors.Is(err, leaf.ErrClosed) {
		t.Errorf("clock after Close: %v", err)
	}
}
