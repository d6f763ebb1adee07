package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/backend"
)

// openTicket reads the URLs of several MySQL servers, separated by commas.
func openTicket(u *target) (*Backend, error) {
	keys, servers, layout := u.ticketServers()
	db, err := ticket.New(servers, &ticket.Options{Layout: layout, Logger: u.log})
	if err = cmp.Or(u.err, err); err != nil {
		return nil, errors.Join(err, closeTickets(servers))
	}
	return &Backend{Key: sortedList(keys), Traits: Traits{Ticket: true}, DB: ticketDB{db, servers}, TagStore: db.Store()}, nil
}

// A ticketDB is a set of ticket servers, and the pools of connections to them.
type ticketDB struct {
	*ticket.DB
	servers []ticket.Server
}

func (d ticketDB) Close() error { return errors.Join(d.DB.Close(), closeTickets(d.servers)) }

func (d ticketDB) Resize(ctx context.Context, r backend.Resize) error {
	o := ticket.ResizeOptions{Lost: r.Lost, Jump: r.Jump}
	if r.Retired != "" {
		u, err := find(r.Retired)
		if err != nil {
			return err
		}
		_, o.Retired, _ = u.ticketServers()
		defer closeTickets(o.Retired)
		if u.err != nil {
			return u.err
		}
	}
	return d.DB.Resize(ctx, &o)
}

// ticketServers returns the servers in the order of the URL, and their keys. A comma in a
// user name, a password or the name of a database is written %2C.
func (u *target) ticketServers() (keys []string, servers []ticket.Server, layout ticket.Layout) {
	u.query(append(mysqlParams(), "stride", "table_per_tag")...)
	layout.Stride = int64(u.number("stride", 1, ticket.MaxStride))
	u.params.Del("stride")
	if text, ok := u.cut("table_per_tag"); ok {
		var err error
		if layout.TablePerTag, err = strconv.ParseBool(text); err != nil {
			u.malformed("table_per_tag is neither true nor false")
		}
	}
	list, ok := strings.CutPrefix(u.address, "//")
	if !ok {
		u.malformed("two slashes are missing after the scheme")
	}
	for i, rest := range strings.Split(list, ",") {
		server := &target{address: "//" + rest, params: maps.Clone(u.params), log: u.log}
		key, pool := server.mysqlServers(server.mysqlConfig())
		if server.err != nil {
			u.fail(fmt.Errorf("server %d: %w", i+1, server.err))
			break
		}
		servers = append(servers, ticket.Server{Name: strings.TrimPrefix(key, "//"), DB: pool})
		keys = append(keys, key)
	}
	return keys, servers, layout
}

func closeTickets(servers []ticket.Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.DB.Close())
	}
	return errors.Join(errs...)
}
