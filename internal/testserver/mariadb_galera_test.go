package testserver_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A killed member and a dropped one return with all writes of the others. The rest of a cluster
// without its majority accepts no write.
func TestGalera(t *testing.T) {
	testserver.Long(t)
	c := testserver.Galera(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	name := c.Member(0).NewDatabase(t)
	c.Member(0).Exec(t, name, "CREATE TABLE t (i INT PRIMARY KEY)")
	rows := 0
	write := func(member int) {
		t.Helper()
		rows++
		c.Member(member).Exec(t, name, fmt.Sprintf("INSERT INTO t VALUES (%d)", rows))
	}
	same := func() {
		t.Helper()
		for i := range 3 {
			db := open(t, c.Member(i).DSN(name)+"&wsrep_sync_wait=1")
			if n := count(t.Context(), t, db); n != rows {
				t.Errorf("member %d has %d rows, want %d", i, n, rows)
			}
		}
	}
	write(1)
	same()
	must(c.Kill(0))
	write(1)
	must(c.Restart(0))
	write(0)
	same()
	must(c.Pause(1))
	must(c.AwaitSize(0, 2))
	write(0)
	must(c.Resume(1))
	same()

	must(c.Kill(0))
	must(c.Kill(1))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := open(t, c.Member(2).DSN(name)).ExecContext(ctx, "INSERT INTO t VALUES (100)"); err == nil {
		t.Error("one of three members took a write alone")
	}
	c.Close()
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", c.Dir, err)
	}
}
