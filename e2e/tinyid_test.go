package e2e

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/internal/testserver/tinyidclient"
)

var tinyIDTable = []string{
	`CREATE TABLE tiny_id_info (
		id bigint(20) unsigned NOT NULL AUTO_INCREMENT,
		biz_type varchar(63) NOT NULL DEFAULT '',
		begin_id bigint(20) NOT NULL DEFAULT '0',
		max_id bigint(20) NOT NULL DEFAULT '0',
		step int(11) DEFAULT '0',
		delta int(11) NOT NULL DEFAULT '1',
		remainder int(11) NOT NULL DEFAULT '0',
		create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
		version bigint(20) NOT NULL DEFAULT '0',
		PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type)) ENGINE=InnoDB`,
	`INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step) VALUES ('order', 1, 1, 1000)`,
}

// A tinyIDServer allocates as TinyID's server does: its statements, its three tries. But it allocates
// for one caller at a time: callers that come together fail TinyID's tries by themselves.
type tinyIDServer struct {
	db *sql.DB
	mu sync.Mutex
}

func startTinyID(t *testing.T, database string) *httptest.Server {
	s := &tinyIDServer{db: openDB(t, database)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server
}

func (s *tinyIDServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("token") != "0f673adf80504e2eaa552f5d791b644c" {
		return // an empty body
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 3 {
		answer, err := s.allocate(r.Context(), r.FormValue("bizType"))
		if err == nil {
			fmt.Fprint(w, answer)
			return
		}
	}
}

var errLostUpdate = errors.New("lost update")

func (s *tinyIDServer) allocate(ctx context.Context, kind string) (answer string, err error) {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return "", err
	}
	defer tx.Rollback()
	var id, maxID, step, delta, remainder, version int64
	err = tx.QueryRowContext(ctx, `select id, max_id, step, delta, remainder, version from tiny_id_info where biz_type=? limit 1`, kind).
		Scan(&id, &maxID, &step, &delta, &remainder, &version)
	if err != nil {
		return "", err
	}
	result, err := tx.ExecContext(ctx, `update tiny_id_info set max_id=?, update_time=now(), version=version+1
		where id=? and max_id=? and version=? and biz_type=?`, maxID+step, id, maxID, version, kind)
	if err != nil {
		return "", err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return "", cmp.Or(err, errLostUpdate)
	}
	return fmt.Sprintf("%d,%d,%d,%d,%d", maxID, maxID+step*20/100, maxID+step, delta, remainder), tx.Commit()
}

// The recipe of docs/migrating-from-tinyid.md, with TinyID's own Java client's behaviour: there,
// both together, and back.
func TestFromTinyID(t *testing.T) {
	testserver.Long(t)
	recipe := readPage(t, "migrating-from-tinyid.md")
	old, ours := mariadb.NewDatabase(t), mariadb.NewDatabase(t)
	mariadb.Exec(t, old, tinyIDTable...)
	mariadb.Exec(t, old, `CREATE TABLE tiny_id_token (id int unsigned NOT NULL AUTO_INCREMENT, token varchar(255) NOT NULL DEFAULT '',
		biz_type varchar(63) NOT NULL DEFAULT '', remark varchar(255) NOT NULL DEFAULT '', PRIMARY KEY (id))`,
		`INSERT INTO tiny_id_token (token, biz_type) VALUES ('0f673adf80504e2eaa552f5d791b644c', 'order'), ('0f673adf80504e2eaa552f5d791b644c', ' user ')`)
	tiny := startTinyID(t, old)

	// Each client keeps its segments when its server changes.
	const clients = 4
	urls := make([]atomic.Pointer[string], clients)
	m := startMovers(t, clients, func(c int) taker {
		urls[c].Store(&tiny.URL)
		client := &tinyidclient.Client{HTTP: http.DefaultClient, URL: func() string { return *urls[c].Load() },
			Token: "0f673adf80504e2eaa552f5d791b644c", Type: "order"}
		t.Cleanup(func() { client.Wait() })
		return paced(client.Next)
	})
	move := func(url string) {
		for c := range urls {
			urls[c].Store(&url)
			m.take(c, 3000) // more than its two segments have
		}
	}

	recipe.run(t, old, "The bound", "1000000", "10000000")
	recipe.run(t, old, "The trigger")
	leafCommand(t, "init", "--store", mariadb.URL(ours))
	imports(t, "--from", mariadb.URL(old), "--store", mariadb.URL(ours), "--margin", "10000000", "--dry-run")
	imports(t, "--from", mariadb.URL(old), "--store", mariadb.URL(ours), "--margin", "10000000")
	tokens := config(t, "tokens.yaml", "tokens:\n"+recipe.query(t, old, "The tokens"))
	s := serveWith(t, "LEAF_TOKENS_FILE="+tokens, "--store", mariadb.URL(ours))

	// A change of mind half-way.
	urls[0].Store(&s.url)
	m.run()
	urls[0].Store(&tiny.URL)
	m.run()

	move(s.url)
	start := queryInt(t, old, "SELECT bound FROM leaf_bound WHERE biz_type = 'order'")
	if maxID := queryInt(t, old, "SELECT max_id FROM tiny_id_info"); maxID > start {
		t.Errorf("the old counter is at %d, beyond its bound %d", maxID, start)
	}
	recipe.run(t, old, "The end of the old counter")
	if _, err := (&tinyIDServer{db: openDB(t, old)}).allocate(t.Context(), "order"); err == nil {
		t.Error("the old counter still moves")
	}
	m.run()

	// And back.
	back := counterOf(t, ours, "order") + 100_000_000
	recipe.run(t, old, "The way back", "5000000000", fmt.Sprint(back))
	move(tiny.URL)
	m.finish()
	if got := counterOf(t, ours, "order"); got > back {
		t.Errorf("our counter is at %d, beyond %d, where the old one went on from", got, back)
	}
}
