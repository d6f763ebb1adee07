package drivers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/segment"
)

// parseTicket reads the URLs of several MySQL servers, separated by commas.
func parseTicket(u *target) (*Backend, error) {
	keys, servers, layout, err := u.ticketServers()
	if err != nil {
		return nil, err
	}
	db, err := ticket.New(servers, &ticket.Options{Layout: layout, Logger: u.log})
	if err != nil {
		return nil, errors.Join(err, closeTickets(servers))
	}
	return &Backend{
		Key:       sortedList(keys),
		Traits:    Traits{Ticket: true},
		OpenStore: func() (segment.Store, error) { return db.Store(), nil },
		Tags:      Part{Create: db.Init, Made: db.Exists},
		ResizeTo:  func(ctx context.Context, r backend.Resize) error { return resizeTickets(ctx, db, r) },
		OnClose:   func() error { return errors.Join(db.Close(), closeTickets(servers)) },
	}, nil
}

func resizeTickets(ctx context.Context, db *ticket.DB, r backend.Resize) error {
	o := ticket.ResizeOptions{Lost: r.Lost, Jump: r.Jump}
	if r.Retired != "" {
		_, u, err := find(r.Retired)
		if err != nil {
			return err
		}
		if _, o.Retired, _, err = u.ticketServers(); err != nil {
			return err
		}
		defer closeTickets(o.Retired)
	}
	return db.Resize(ctx, &o)
}

// ticketServers returns the servers in the order of the URL, and their keys. A comma in a
// user name, a password or the name of a database is written %2C.
func (u *target) ticketServers() (keys []string, servers []ticket.Server, layout ticket.Layout, err error) {
	if err := u.query(append(mysqlParams(), "stride", "table_per_tag")...); err != nil {
		return nil, nil, layout, err
	}
	if layout, err = u.cutLayout(); err != nil {
		return nil, nil, layout, err
	}
	list, ok := strings.CutPrefix(u.address, "//")
	if !ok {
		return nil, nil, layout, malformed("two slashes are missing after the scheme")
	}
	for i, rest := range strings.Split(list, ",") {
		server := &target{scheme: "mysql", address: "//" + rest, params: maps.Clone(u.params), log: u.log}
		key, configs, err := server.mysqlServers()
		var db *sql.DB
		if err == nil {
			db, err = server.mysqlPool(configs)
		}
		if err != nil {
			return nil, nil, layout, errors.Join(fmt.Errorf("server %d: %w", i+1, err), closeTickets(servers))
		}
		servers = append(servers, ticket.Server{Name: strings.TrimPrefix(key, "//"), DB: db})
		keys = append(keys, key)
	}
	return keys, servers, layout, nil
}

// cutLayout takes the parameters of the layout out of the others.
func (u *target) cutLayout() (l ticket.Layout, err error) {
	stride, err := u.number("stride", 1, ticket.MaxStride)
	if err == nil && u.params.Has("table_per_tag") {
		if l.TablePerTag, err = strconv.ParseBool(u.params.Get("table_per_tag")); err != nil {
			err = malformed("table_per_tag is neither true nor false")
		}
	}
	l.Stride = int64(stride)
	u.params.Del("stride")
	u.params.Del("table_per_tag")
	return l, err
}

func closeTickets(servers []ticket.Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.DB.Close())
	}
	return errors.Join(errs...)
}
