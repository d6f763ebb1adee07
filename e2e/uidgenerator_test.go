package e2e

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"
)

// workerNode is uid-generator's own table, with a default that the strict mode of today's servers
// needs.
const workerNode = `CREATE TABLE WORKER_NODE (
	ID BIGINT NOT NULL AUTO_INCREMENT, HOST_NAME VARCHAR(64) NOT NULL, PORT VARCHAR(64) NOT NULL, TYPE INT NOT NULL,
	LAUNCH_DATE DATE NOT NULL, MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, CREATED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
	PRIMARY KEY (ID)) ENGINE=InnoDB`

// A uidGenerator is a process of uid-generator with 29, 21 and 13 bits from 2016-09-20 in China.
type uidGenerator struct {
	worker int64
	cached bool

	mu       sync.Mutex
	second   int64
	sequence int64
}

func startUIDGenerator(t *testing.T, db *sql.DB, cached bool) *uidGenerator {
	t.Helper()
	result, err := db.ExecContext(t.Context(), `INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)
		VALUES ('192.0.2.1', '1-1', 2, NOW(), NOW(), NOW())`)
	if err != nil {
		t.Fatal(err)
	}
	worker, err := result.LastInsertId()
	if err != nil {
		t.Fatal(err)
	}
	return &uidGenerator{worker: worker, cached: cached, second: time.Now().Unix()}
}

// nextID counts a second's sequence up. The default mode then waits for the clock, and the cached
// mode continues with the next second, without a look at the clock.
func (u *uidGenerator) nextID(context.Context) (int64, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := time.Now().Unix(); !u.cached && now > u.second {
		u.second, u.sequence = now, 0
	}
	if u.sequence > 8191 {
		for !u.cached && time.Now().Unix() <= u.second {
			time.Sleep(time.Millisecond)
		}
		u.second, u.sequence = u.second+1, 0
	}
	epoch := time.Date(2016, 9, 20, 0, 0, 0, 0, time.FixedZone("CST", 8*60*60)).Unix()
	u.sequence++
	return (u.second-epoch)<<34 | u.worker<<13 | (u.sequence - 1), nil
}

// The recipe of docs/migrating-from-uid-generator.md, in both of its modes: one table, together,
// there and back.
func TestFromUIDGenerator(t *testing.T) {
	for mode, cached := range map[string]bool{"default": false, "cached": true} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			database := mariadb.NewDatabase(t)
			mariadb.Exec(t, database, workerNode)
			db := openDB(t, database)
			started := func(int) taker { return paced(startUIDGenerator(t, db, cached).nextID) }
			m := startMovers(t, 4, started)

			workers := mariadb.URL(database) + "?layout=worker_node"
			leafCommand(t, "init", "--workers", workers)
			text := yamlOf(t, "migrating-from-uid-generator.md") + "  mode: " + mode + "\n"
			s := serve(t, "--config", config(t, "leaf.yaml", text), "--data", t.TempDir(), "--workers", workers)
			until(t, time.Minute, "serving uid", func() error {
				ids, err := s.next10("/api/uid/get/order")(0)(t.Context())
				m.seen.Shard().Add(ids...)
				return err
			})
			m.move(s.next10("/api/uid/get/order"))
			m.move(started) // new rows
			m.finish()
		})
	}
}
