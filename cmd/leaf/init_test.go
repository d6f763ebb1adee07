package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// initRun runs `leaf init` and checks its exit code and output.
func initRun(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got, stdout, stderr := leafRun(t.Context(), append([]string{"init"}, args...)...)
	if got != code || !strings.Contains(stdout+stderr, want) {
		t.Errorf("leaf init %v: exit code %d, want %d and %q\n%s%s", args, got, code, want, stdout, stderr)
	}
}

// A second init checks the existing parts as a server would, and changes nothing.
func TestInitAgain(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	name := db.NewDatabase(t)
	url := db.URL(name)
	for _, flags := range [][]string{{"--store", url, "--workers", url}, {"--workers", url + "?layout=worker_node"}} {
		initRun(t, 0, "created", flags...)
		initRun(t, 0, "nothing to do", flags...)
	}
	db.Exec(t, name, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 500, 10)")
	initRun(t, 0, "nothing to do", "--store", url)
	if code, stdout, stderr := leafRun(t.Context(), "tag", "list", "--store", url); code != 0 || !strings.Contains(stdout, "order  10    500 ") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	db.Exec(t, name, "ALTER TABLE leaf_alloc MODIFY max_id INT NOT NULL", "ALTER TABLE leaf_worker MODIFY worker INT NOT NULL",
		"ALTER TABLE WORKER_NODE DROP COLUMN TYPE")
	initRun(t, 1, "max_id is of type int", "--store", url)
	initRun(t, 1, "worker is of type int", "--workers", url)
	initRun(t, 1, "TYPE", "--workers", url+"?layout=worker_node")
}

// Of ticket servers all must be there. What to do where one has lost its data, each
// message says, and in the end they are a set again.
func TestInitWithoutALostTicketServer(t *testing.T) {
	db := testserver.MariaDB(t, nil)
	names := []string{db.NewDatabase(t), db.NewDatabase(t), db.NewDatabase(t)}
	url := func(of ...int) string {
		var servers []string
		for _, i := range of {
			servers = append(servers, strings.TrimPrefix(db.URL(names[i]), "mysql://"))
		}
		return "ticket+mysql://" + strings.Join(servers, ",")
	}
	initRun(t, 0, "created", "--store", url(0, 1, 2))
	initRun(t, 0, "nothing to do", "--store", url(0, 1, 2))
	if code, _, stderr := leafRun(t.Context(), "tag", "create", "order", "--max-id", "500", "--store", url(0, 1, 2)); code != 0 {
		t.Fatal(stderr)
	}
	db.Exec(t, "", "DROP DATABASE "+names[1], "CREATE DATABASE "+names[1])
	initRun(t, 1, "--lost", "--store", url(0, 1, 2))
	initRun(t, 1, "say of one whose data is gone for good that it is lost", "--resize", "--store", url(0, 1, 2))
	_, host, _ := strings.Cut(db.URL(names[1]), "@")
	initRun(t, 0, fmt.Sprintf("this assumes that the data of %s never comes back into use", host), "--resize", "--lost", host, "--jump", "70000", "--store", url(0, 1, 2))
	code, stdout, stderr := leafRun(t.Context(), "tag", "list", "--store", url(0, 1, 2))
	if code != 0 || !strings.Contains(stdout, "order  1000  7050") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	db.Exec(t, "", "DROP DATABASE "+names[1], "CREATE DATABASE "+names[1])
	initRun(t, 0, `"result": "resized"`, "--resize", "--lost", host, "--store", url(0, 2), "-o", "json")
	initRun(t, 0, "nothing to do", "--store", url(0, 2))
}
