package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/backend"
)

// openTicket reads the URLs of several MySQL servers, separated by commas.
func openTicket(u *target) (*Backend, error) {
	servers, layout := u.ticketServers()
	db, err := ticket.New(servers, &ticket.Options{Layout: layout, Logger: u.log})
	if err = cmp.Or(u.err, err); err != nil {
		return nil, errors.Join(err, closeTickets(servers))
	}
	u.traits.Ticket = true
	return &Backend{DB: ticketDB{db, servers}, TagStore: db.Store()}, nil
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
		o.Retired, _ = u.ticketServers()
		defer closeTickets(o.Retired)
		if err := u.check(); err != nil {
			return err
		}
	}
	return d.DB.Resize(ctx, &o)
}

// ticketServers returns the servers in the order of the URL. A comma in a user name, a password or
// the name of a database is written %2C.
func (u *target) ticketServers() (servers []ticket.Server, layout ticket.Layout) {
	layout.Stride = int64(u.number("stride", 1, ticket.MaxStride))
	if text, ok := u.param("table_per_tag"); ok {
		var err error
		if layout.TablePerTag, err = strconv.ParseBool(text); err != nil {
			u.malformed("table_per_tag is neither true nor false")
		}
	}
	list, ok := strings.CutPrefix(u.address, "//")
	if !ok {
		u.malformed("two slashes are missing after the scheme")
	}
	common := *u
	var keys []string
	for i, rest := range strings.Split(list, ",") {
		server := common
		server.part, server.address = fmt.Sprintf("server %d: ", i+1), "//"+rest
		connector := server.mysqlConnector()
		u.known = server.known
		if u.fail(server.err); u.err != nil {
			break
		}
		servers = append(servers, ticket.Server{Name: strings.TrimPrefix(server.key, "//"), DB: newPool(connector)})
		keys = append(keys, server.key)
	}
	u.key = sortedList(keys)
	return servers, layout
}

func closeTickets(servers []ticket.Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.DB.Close())
	}
	return errors.Join(errs...)
}
