package e2e

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// Of three ticket servers the second one is ahead of the others, and loses its data for good, under
// load. The set continues without it, or with an empty one in its place, and deals no ticket twice.
// A server with the old set issues no IDs, and is not ready.
func TestTicketServerLostForGood(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	servers := []*testserver.MariaDBServer{testserver.MariaDB(t, nil), testserver.MariaDB(t, nil), testserver.MariaDB(t, nil)}
	for layout, params := range map[string]string{"tickets": "", "tables": "?table_per_tag=true", "blocks": "?stride=100"} {
		for name, stay := range map[string][]int{"removed": {0, 2}, "replaced": {0, 1, 2}} {
			t.Run(layout+" "+name, func(t *testing.T) {
				lost := newTicketSet(t, servers, params)
				leafCommand(t, "init", "--store", lost.url(0, 1, 2))
				leafCommand(t, "tag", "create", "order", "--step", "50", "--store", lost.url(0, 1, 2))
				a := startTickets(t, lost.url(0, 1, 2), filepath.Join(t.TempDir(), "a"))
				b := startTickets(t, lost.url(0, 1, 2), filepath.Join(t.TempDir(), "b"))
				part := figure[int64](300, 1000)
				a.await(t, part)
				for _, db := range []*testserver.MariaDBServer{servers[0], servers[2]} {
					if err := db.Stop(); err != nil {
						t.Fatal(err)
					}
				}
				b.await(t, b.count.Load()+part) // from the second one alone
				for _, db := range []*testserver.MariaDBServer{servers[0], servers[2]} {
					if err := db.Start(); err != nil {
						t.Fatal(err)
					}
				}
				servers[1].Exec(t, "", "DROP DATABASE "+lost.databases[1], "CREATE DATABASE "+lost.databases[1])
				a.await(t, a.count.Load()+part)
				leafCommand(t, "init", "--resize", "--lost", lost.host(1), "--store", lost.url(stay...))
				until(t, 20*time.Second, "not ready with the old set", func() error {
					if body, err := get(a.server.url + "/readyz"); len(stay) < 3 && (err == nil || !strings.Contains(err.Error(), "503 Service Unavailable")) {
						return fmt.Errorf("%q, %v", body, err)
					}
					return nil
				})
				a.end(t)
				b.end(t)
				c := startTickets(t, lost.url(stay...), filepath.Join(t.TempDir(), "c"))
				c.await(t, 4*part)
				c.end(t)
				c.seen.Shard().Add(a.ids...)
				c.seen.Shard().Add(b.ids...)
				c.check(t)
			})
		}
	}
}

// A ticketSet is a database on each of some servers.
type ticketSet struct {
	servers   []*testserver.MariaDBServer
	databases []string
	params    string
}

func newTicketSet(t *testing.T, servers []*testserver.MariaDBServer, params string) ticketSet {
	t.Helper()
	s := ticketSet{servers: servers, params: params}
	for _, db := range servers {
		s.databases = append(s.databases, db.NewDatabase(t))
	}
	return s
}

func (s ticketSet) member(i int) string {
	return strings.TrimPrefix(s.servers[i].URL(s.databases[i]), "mysql://")
}

func (s ticketSet) url(of ...int) string {
	var members []string
	for _, i := range of {
		members = append(members, s.member(i))
	}
	return "ticket+mysql://" + strings.Join(members, ",") + s.params
}

// host is what people call the member.
func (s ticketSet) host(i int) string {
	u, err := url.Parse("mysql://" + s.member(i))
	if err != nil {
		panic(err)
	}
	return u.Host
}
