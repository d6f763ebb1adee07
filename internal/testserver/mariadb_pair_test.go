package testserver_test

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// The replica lacks the commits of a broken pair, also after its promotion.
func TestMariaDBPair(t *testing.T) {
	pair := testserver.MariaDBPair(t, &testserver.MariaDBPairOptions{Timeout: 50 * time.Millisecond, AfterSync: true})
	name := pair.Primary.NewDatabase(t)
	pair.Primary.Exec(t, name, "CREATE TABLE t (i INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO t VALUES (1)")
	pair.CatchUp(t)
	replica := open(t, pair.Replica.DSN(name))
	if n := count(t.Context(), t, replica); n != 1 {
		t.Errorf("%d rows on the replica, want 1", n)
	}
	pair.Break(t)
	pair.Primary.Exec(t, name, "INSERT INTO t VALUES (2)") // it continues alone
	if err := pair.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	pair.Promote(t)
	pair.Replica.Exec(t, name, "INSERT INTO t VALUES (3)")
	if n := count(t.Context(), t, replica); n != 2 {
		t.Errorf("%d rows after the promotion, want 2", n)
	}
	if err := pair.ReturnReadOnly(); err != nil {
		t.Fatal(err)
	}
	var readOnly bool
	primary := open(t, pair.Primary.DSN(name))
	if err := primary.QueryRow("SELECT @@read_only").Scan(&readOnly); err != nil || !readOnly {
		t.Errorf("the former primary: read_only %v, %v", readOnly, err)
	}
	if n := count(t.Context(), t, primary); n != 2 {
		t.Errorf("%d rows on the former primary, want 2", n)
	}
}
