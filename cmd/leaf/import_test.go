package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// oldTables are those of the systems, as their own scripts create them.
var oldTables = []string{
	`CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL,
		description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))`,
	`INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('java-order', 2001, 2000, 'orders'), ('java-broken', -5, 10, NULL)`,
	`CREATE TABLE tiny_id_info (id bigint unsigned NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '', begin_id bigint NOT NULL DEFAULT 0,
		max_id bigint NOT NULL DEFAULT 0, step int DEFAULT 0, delta int NOT NULL DEFAULT 1, remainder int NOT NULL DEFAULT 0,
		create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		version bigint NOT NULL DEFAULT 0, PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type))`,
	`INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step) VALUES ('tiny-order', 1, 300001, 100000)`,
	`INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder) VALUES ('tiny-odd', 1, 100001, 100000, 2, 1)`,
	`CREATE TABLE cosid (name varchar(100) NOT NULL, last_max_id bigint unsigned NOT NULL DEFAULT 0, last_fetch_time bigint unsigned NOT NULL, PRIMARY KEY (name))`,
	`INSERT INTO cosid VALUES ('shop.order', 50, 0), ('shop.invoice@2026-11', 7, 0)`,
	`CREATE TABLE cosid_machine (name varchar(100) NOT NULL, namespace varchar(100) NOT NULL, machine_id int unsigned NOT NULL DEFAULT 0,
		last_timestamp bigint unsigned NOT NULL DEFAULT 0, instance_id varchar(100) NOT NULL DEFAULT '', distribute_time bigint unsigned NOT NULL DEFAULT 0,
		revert_time bigint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (name))`,
	`INSERT INTO cosid_machine (name, namespace, machine_id, last_timestamp) VALUES ('shop.00000003', 'shop', 3, 1700000000000)`,
	`CREATE TABLE Tickets64 (id bigint unsigned NOT NULL AUTO_INCREMENT, stub char(1) NOT NULL DEFAULT '', PRIMARY KEY (id), UNIQUE KEY stub (stub))`,
	`REPLACE INTO Tickets64 (stub) VALUES ('a')`, `REPLACE INTO Tickets64 (stub) VALUES ('a')`, `REPLACE INTO Tickets64 (stub) VALUES ('a')`,
	`CREATE TABLE WORKER_NODE (ID bigint NOT NULL AUTO_INCREMENT, HOST_NAME varchar(64) NOT NULL, PORT varchar(64) NOT NULL, TYPE int NOT NULL,
		LAUNCH_DATE date NOT NULL, MODIFIED timestamp NOT NULL, CREATED timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (ID))`,
	`INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED) VALUES ('h', '1', 2, NOW(), NOW()), ('h', '2', 2, NOW(), NOW())`,
	`CREATE TABLE orders (id int NOT NULL AUTO_INCREMENT, what text, PRIMARY KEY (id))`,
	`INSERT INTO orders (what) VALUES ('a'), ('b')`,
	`CREATE TABLE customers (id bigint NOT NULL AUTO_INCREMENT, stub int, PRIMARY KEY (id))`, // like a ticket server's, but for a key
}

func importJSON(t *testing.T, args ...string) (code int, rows []importRow, stderr string) {
	t.Helper()
	code, stdout, stderr := leafRun(t.Context(), append([]string{"import", "-o", "json"}, args...)...)
	if stdout != "" {
		if err := json.Unmarshal([]byte(stdout), &rows); err != nil {
			t.Fatalf("%v\n%s", err, stdout)
		}
	}
	return code, rows, stderr
}

func TestImport(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	database := db.NewDatabase(t)
	db.Exec(t, database, oldTables...)
	from, store := db.URL(database), "sqlite:"+filepath.Join(t.TempDir(), "ids.db")
	if code, _, stderr := leafRun(t.Context(), "init", "--store", store); code != 0 {
		t.Fatal(stderr)
	}
	row := func(system, table, tag string, next, before, maxID int64, result string) importRow {
		return importRow{System: system, Table: table, Tag: tag, Next: next, Before: before, MaxID: maxID, Result: result}
	}
	odd := row("TinyID", "tiny_id_info", "tiny-odd", 100002, 0, 0, "skip")
	odd.Reason = "2 servers share it, and 1 of them are not named here: their counters may be higher"
	broken := row("Java Leaf", "leaf_alloc", "java-broken", 0, 0, 0, "skip")
	broken.Reason = "its counter is negative, or none (NULL)"
	want := []importRow{
		row("ticket server", "Tickets64", "Tickets64", 4, 0, 104, "create"),
		broken,
		row("Java Leaf", "leaf_alloc", "java-order", 2001, 0, 2101, "create"),
		row("AUTO_INCREMENT", "orders", "orders", 3, 0, 103, "create"),
		row("CosId", "cosid", "shop.order", 51, 0, 151, "create"),
		odd,
		row("TinyID", "tiny_id_info", "tiny-order", 300002, 0, 300102, "create"),
	}
	args := []string{"--from", from, "--table", "orders", "--store", store, "--margin", "100"}
	code, rows, stderr := importJSON(t, append(args, "--dry-run")...)
	if diff := cmp.Diff(want, rows); diff != "" || code != 1 {
		t.Fatalf("dry run: exit code %d\n%s\n%s", code, stderr, diff)
	}
	for _, text := range []string{
		"2 of 7 counters are not taken over: java-broken, tiny-odd",
		"shop.invoice@2026-11 counts for one period",
		"namespace shop has 1 machine IDs, the highest is 3, and the latest time is 1700000000000",
		"WORKER_NODE has 2 rows, and the highest worker ID is 2",
		"column id of orders is int(11): make it BIGINT",
		"nothing was changed",
	} {
		if !strings.Contains(stderr, text) {
			t.Errorf("no %q in\n%s", text, stderr)
		}
	}
	if _, stdout, _ := leafRun(t.Context(), "tag", "list", "--store", store, "-o", "json"); strings.TrimSpace(stdout) != "[]" {
		t.Errorf("the dry run left %s", stdout)
	}
	if _, rows, stderr = importJSON(t, args...); cmp.Diff(want, rows) != "" {
		t.Fatalf("%s\n%s", stderr, cmp.Diff(want, rows))
	}
	_, stdout, _ := leafRun(t.Context(), "tag", "list", "--store", store)
	for _, line := range []string{`tiny-order 100000 300102 .* imported from tiny_id_info`, `java-order 2000 2101 .* orders`, `Tickets64 1000 104`} {
		wantLine(t, strings.Join(strings.Fields(stdout), " "), strings.ReplaceAll(line, " ", ` +`))
	}

	// A repetition raises moved counters, and lowers nothing.
	db.Exec(t, database, `UPDATE tiny_id_info SET max_id = 500001 WHERE biz_type = 'tiny-order'`, `UPDATE cosid SET last_max_id = 60`)
	if code, _, stderr := leafRun(t.Context(), "tag", "set", "shop.order", "--max-id", "9000", "--store", store); code != 0 {
		t.Fatal(stderr)
	}
	_, rows, _ = importJSON(t, args...)
	got := make(map[string]importRow)
	for _, r := range rows {
		got[r.Tag] = r
	}
	for _, want := range []importRow{
		row("TinyID", "tiny_id_info", "tiny-order", 500002, 300102, 500102, "raise"),
		row("CosId", "cosid", "shop.order", 61, 9000, 9000, "keep"),
		row("Java Leaf", "leaf_alloc", "java-order", 2001, 2101, 2101, "keep"),
	} {
		if diff := cmp.Diff(want, got[want.Tag]); diff != "" {
			t.Errorf("repeated: %s", diff)
		}
	}
}

// Databases that share a counter must all be named: the highest counts.
func TestImportSharedCounters(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	var from []string
	for _, maxID := range []string{"100001", "400001"} {
		database := db.NewDatabase(t)
		db.Exec(t, database, oldTables[2],
			`INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder) VALUES ('odd', `+maxID+`, 100000, 2, `+maxID[:1]+` DIV 4)`)
		from = append(from, "--from", db.URL(database))
	}
	store := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	if code, _, stderr := leafRun(t.Context(), "init", "--store", store); code != 0 {
		t.Fatal(stderr)
	}
	code, rows, stderr := importJSON(t, append(from, "--store", store, "--margin", "0")...)
	if code != 0 || len(rows) != 1 || rows[0].MaxID != 400002 || rows[0].Result != "create" {
		t.Errorf("%d %+v\n%s", code, rows, stderr)
	}
}

// A set of Leaf's own ticket servers is a store as others are. All of its servers must answer, because
// each may be ahead. Other ticket servers are no set.
func TestImportFromTicketServers(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	names := []string{db.NewDatabase(t), db.NewDatabase(t)}
	set := "ticket+mysql://" + strings.TrimPrefix(db.URL(names[0]), "mysql://") + "," + strings.TrimPrefix(db.URL(names[1]), "mysql://") + "?stride=100"
	to := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	if code, _, stderr := leafRun(t.Context(), "init", "--store", to); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := leafRun(t.Context(), "import", "--from", set, "--store", to); code != 2 || !strings.Contains(stderr, "name each ticket server by a mysql: URL of its own") {
		t.Errorf("no set: exit code %d\n%s", code, stderr)
	}
	for _, args := range [][]string{{"init"}, {"tag", "create", "order", "--start", "500", "--step", "7", "--description", "orders"}} {
		if code, _, stderr := leafRun(t.Context(), append(args, "--store", set)...); code != 0 {
			t.Fatal(stderr)
		}
	}
	db.Exec(t, names[1], "UPDATE leaf_ticket_tag SET next_id = 1050")
	if code, rows, stderr := importJSON(t, "--from", set, "--store", to, "--margin", "1000"); code != 0 || len(rows) != 1 || rows[0].MaxID != 2050 {
		t.Errorf("%d %+v\n%s", code, rows, stderr)
	}
	_, stdout, _ := leafRun(t.Context(), "tag", "list", "--store", to)
	wantLine(t, stdout, `^order +7 .* orders$`)
	db.Exec(t, "", "DROP DATABASE "+names[1])
	if code, rows, stderr := importJSON(t, "--from", set, "--store", to); code != 1 || rows != nil || !strings.Contains(stderr, names[1]) {
		t.Errorf("without a server: %d %+v\n%s", code, rows, stderr)
	}
}

func TestImportFromRedis(t *testing.T) {
	r := testserver.Redis(t, nil)
	for _, args := range [][]string{
		{"SET", "cosid:{shop.order}.adder", "120"},
		{"SET", "cosid:{shop.broken}.adder", "x"},
		{"HSET", "cosid:{shop}:itc_idx", "host:1", "3|1700000000000"},
		{"SET", "other", "1"},
	} {
		if _, err := r.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	store := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	if code, _, stderr := leafRun(t.Context(), "init", "--store", store); code != 0 {
		t.Fatal(stderr)
	}
	code, rows, stderr := importJSON(t, "--from", r.URL(), "--store", store, "--margin", "0")
	want := []importRow{
		{System: "CosId", Table: "cosid:{shop.broken}.adder", Tag: "shop.broken", Result: "skip", Reason: "its counter is negative, or none (NULL)"},
		{System: "CosId", Table: "cosid:{shop.order}.adder", Tag: "shop.order", Next: 121, MaxID: 121, Result: "create"},
	}
	if diff := cmp.Diff(want, rows); code != 1 || diff != "" || !strings.Contains(stderr, "namespace shop has 1 machine IDs, the highest is 3") {
		t.Errorf("%d %s\n%s", code, stderr, diff)
	}

	// Another store of Leaf's own.
	other := "sqlite:" + filepath.Join(t.TempDir(), "other.db")
	if code, _, stderr := leafRun(t.Context(), "init", "--store", other); code != 0 {
		t.Fatal(stderr)
	}
	code, rows, stderr = importJSON(t, "--from", store, "--store", other, "--margin", "10")
	if code != 0 || len(rows) != 1 || rows[0].System != "Leaf" || rows[0].MaxID != 131 {
		t.Errorf("%d %+v\n%s", code, rows, stderr)
	}
}

func TestImportRefusals(t *testing.T) {
	store := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	if code, _, stderr := leafRun(t.Context(), "init", "--store", store); code != 0 {
		t.Fatal(stderr)
	}
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--store", store}, 2, "--from is missing"},
		{[]string{"--from", "x", "--store", store}, 2, "--from: URL x: invalid argument: it has no scheme"},
		{[]string{"--from", store, "--store", store, "--margin", "-1"}, 2, "--margin must not be negative"},
		{[]string{"--from", store, "--store", store, "--table", "orders"}, 2, "only MySQL has tables with an AUTO_INCREMENT"},
		{[]string{"--from", store, "--store", store}, 1, "there is nothing to take over"},
	}
	for _, tt := range tests {
		code, stdout, stderr := leafRun(t.Context(), append([]string{"import"}, tt.args...)...)
		if code != tt.code || stdout != "" || !strings.Contains(stderr, tt.want) {
			t.Errorf("%q: %d %s%s\nwant %q", tt.args, code, stdout, stderr, tt.want)
		}
	}
}

// A masked counter and a plain one of the same name do not become one: a hidden number could be a plain
// one. With the same mask a counter is taken over.
func TestImportOfMasks(t *testing.T) {
	const mask, other = "k1:10^9:0123456789ab", "k1:10^9:ba9876543210"
	store := func(create ...string) string {
		t.Helper()
		url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
		for _, args := range [][]string{{"init"}, append([]string{"tag", "create", "order"}, create...)} {
			if code, _, stderr := leafRun(t.Context(), append(args, "--store", url)...); code != 0 {
				t.Fatal(stderr)
			}
		}
		return url
	}
	for _, tt := range []struct {
		from, to []string
		want     string
	}{
		{[]string{"--mask", mask}, nil, importSkip},
		{nil, []string{"--mask", mask}, importSkip},
		{[]string{"--mask", mask}, []string{"--mask", other}, importSkip},
		{[]string{"--mask", mask}, []string{"--mask", mask}, importRaise},
	} {
		_, rows, stderr := importJSON(t, "--from", store(tt.from...), "--store", store(tt.to...))
		if len(rows) != 1 || rows[0].Result != tt.want || rows[0].MaxID > 1 != (tt.want == importRaise) {
			t.Errorf("%q to %q: %+v\n%s", tt.from, tt.to, rows, stderr)
		}
	}
}

// Tags of Leaf's own with options keep them, and none of their numbers comes again. MySQL has a
// placeholder for them in leaf_alloc.
func TestImportOfOptions(t *testing.T) {
	const mask = "k1:10^9:0123456789ab"
	db := testserver.MariaDB(t, nil)
	for _, from := range []string{db.URL(db.NewDatabase(t)), "sqlite:" + filepath.Join(t.TempDir(), "old.db")} {
		to := "sqlite:" + filepath.Join(t.TempDir(), "new.db")
		for _, args := range [][]string{
			{"init", "--store", to}, {"init", "--store", from},
			{"tag", "create", "hidden", "--mask", mask, "--start", "40", "--step", "7", "--store", from},
			{"tag", "create", "plain", "--start", "30", "--step", "7", "--store", from},
			{"tag", "create", "strict", "--order", "strict", "--start", "20", "--step", "7", "--store", from},
			{"tag", "create", "yearly", "--period", "year", "--zone", "Europe/Berlin", "--step", "7", "--store", from},
		} {
			if code, _, stderr := leafRun(t.Context(), args...); code != 0 {
				t.Fatal(stderr)
			}
		}
		issueFrom(t, from, "yearly", "2024-01-01", 5000)
		issueFrom(t, from, "yearly", "2025-01-01", 30)
		issueFrom(t, from, "strict", "", 10)
		code, rows, stderr := importJSON(t, "--from", from, "--store", to, "--margin", "2000")
		if code != 0 {
			t.Fatalf("%+v\n%s", rows, stderr)
		}
		_, stdout, _ := leafRun(t.Context(), "tag", "list", "--store", to)
		for _, line := range []string{"hidden 7 2040 .*mask=" + regexp.QuoteMeta(mask), "plain 7 2030", "strict 7 2030 .*order=strict", "yearly 7 7001 .*period=year.*zone=Europe/Berlin"} {
			wantLine(t, strings.Join(strings.Fields(stdout), " "), strings.ReplaceAll(line, " ", ` +`))
		}
		for _, period := range []string{"2023-01-01", "2024-01-01", "2025-01-01"} {
			if got := issueFrom(t, to, "yearly", period, 1); got != 7001 {
				t.Errorf("%s: the period %s begins at %d, want 7001", from, period, got)
			}
		}
	}
}

// A margin for which a mask or a form has no room leaves the tag out: a smaller one does for it.
func TestImportNeedsRoom(t *testing.T) {
	from, to := "sqlite:"+filepath.Join(t.TempDir(), "old.db"), "sqlite:"+filepath.Join(t.TempDir(), "new.db")
	for _, args := range [][]string{
		{"init", "--store", to}, {"init", "--store", from},
		{"tag", "create", "dated", "--period", "year", "--form", "D-{period:yyyy}-{n:6}", "--store", from},
		{"tag", "create", "hidden", "--mask", "k1:10^9:0123456789ab", "--store", from},
		{"tag", "create", "plain", "--store", from},
		{"tag", "create", "written", "--form", "W-{n:6}", "--store", from},
		{"tag", "create", "outgrown", "--form", "W-{n:3}", "--start", "1200", "--store", from},
	} {
		if code, _, stderr := leafRun(t.Context(), args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	for _, tt := range []struct {
		margin string
		want   map[string]string
	}{
		{"1000000000000", map[string]string{"dated": importSkip, "hidden": importSkip, "outgrown": importCreate, "plain": importCreate, "written": importSkip}},
		{"1000", map[string]string{"dated": importCreate, "hidden": importCreate, "outgrown": importKeep, "plain": importKeep, "written": importCreate}},
		{"999999", map[string]string{"dated": importSkip, "hidden": importRaise, "outgrown": importKeep, "plain": importKeep, "written": importSkip}},
	} {
		_, rows, stderr := importJSON(t, "--from", from, "--store", to, "--margin", tt.margin)
		got := make(map[string]string)
		for _, row := range rows {
			got[row.Tag] = row.Result
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("margin %s: %s\n%s", tt.margin, stderr, diff)
		}
	}
}

// issueFrom takes numbers of a tag from the store itself, and returns the first.
func issueFrom(t *testing.T, url, tag, period string, n int64) int64 {
	t.Helper()
	b, err := drivers.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	store, err := b.Store()
	if err != nil {
		t.Fatal(err)
	}
	g, err := store.(segment.StrictStore).AdvanceStrict(t.Context(), tag, period, n)
	if err != nil {
		t.Fatal(err)
	}
	return g.Range.Start
}
