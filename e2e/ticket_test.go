package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// Of two ticket servers one is killed and returns, and then a third one joins: the service continues,
// and deals no ticket twice.
func TestTicketServers(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	servers := []*testserver.MariaDBServer{testserver.MariaDB(t, nil), testserver.MariaDB(t, nil)}
	for name, layout := range map[string]string{"tickets": "", "tables": "?table_per_tag=true", "blocks": "?stride=100"} {
		t.Run(name, func(t *testing.T) {
			var members []string
			for i := range 3 {
				s := servers[i%2]
				members = append(members, strings.TrimPrefix(s.URL(s.NewDatabase(t)), "mysql://"))
			}
			two, three := "ticket+mysql://"+strings.Join(members[:2], ",")+layout, "ticket+mysql://"+strings.Join(members, ",")+layout
			leafCommand(t, "init", "--store", two)
			leafCommand(t, "tag", "create", "order", "--step", "50", "--store", two)
			l := startTickets(t, two, filepath.Join(t.TempDir(), "data"))
			part := figure[int64](300, 1000)
			for range 2 {
				for _, db := range servers {
					l.await(t, l.count.Load()+part)
					if err := db.Kill(); err != nil {
						t.Fatal(err)
					}
					l.await(t, l.count.Load()+part)
					if err := db.Start(); err != nil {
						t.Fatal(err)
					}
				}
			}
			l.end(t)
			leafCommand(t, "init", "--resize", "--store", three)
			m := startTickets(t, three, filepath.Join(t.TempDir(), "data"))
			m.await(t, part)
			m.end(t)
			m.seen.Shard().Add(l.ids...)
			m.check(t)
		})
	}
}

// tickets are clients of the scheme ticket, of one server.
type tickets struct {
	*load
	server *server
	ids    []int64
}

func startTickets(t testing.TB, store, data string) *tickets {
	t.Helper()
	s := serveWith(t, "LEAF_SEGMENT_MAX_STOCK=200", "--store", store, "--data", data) // asks the servers all the time
	until(t, 10*time.Second, "answering", func() error {
		if body, err := get(s.url + "/api/ticket/get/none"); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
			return fmt.Errorf("an unknown tag: %q, %v", body, err)
		}
		return nil
	})
	l := &tickets{load: new(load), server: s}
	ctx := l.begin(t)
	shard := l.seen.Shard()
	l.wg.Go(func() {
		for ctx.Err() == nil {
			body, err := get(s.url + "/api/ticket/get/order")
			var id int64
			if err == nil {
				_, err = fmt.Sscan(body, &id)
			}
			if err != nil {
				l.fail(err)
				time.Sleep(time.Millisecond)
				continue
			}
			shard.Add(id)
			l.ids = append(l.ids, id)
			l.count.Add(1)
		}
	})
	return l
}

// end stops the clients and the server, and says how the calls went.
func (l *tickets) end(t testing.TB) {
	t.Helper()
	l.stop()
	l.server.stop()
	t.Logf("%d tickets, %d failed calls (first: %v)", l.count.Load(), l.errors.Load(), l.firstError())
}
