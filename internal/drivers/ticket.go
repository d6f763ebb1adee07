package drivers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/leaf-id/leaf/driver/ticket"
)

// A ticketStore closes its databases with itself.
type ticketStore struct {
	*ticket.Store
	servers []ticket.Server
}

func (s *ticketStore) Close() error { return errors.Join(s.Store.Close(), closeTickets(s.servers)) }

func openTicket(rest string, o *Options) (Store, error) {
	servers, layout, err := ticketServers(rest, o.Logger)
	if err != nil {
		return nil, err
	}
	store, err := ticket.Open(servers, layout, &ticket.Options{Logger: o.Logger})
	if err != nil {
		return nil, errors.Join(err, closeTickets(servers))
	}
	return &ticketStore{store, servers}, nil
}

func initTicket(ctx context.Context, rest string, o InitOptions) error {
	servers, layout, err := ticketServers(rest, nil)
	if err != nil {
		return err
	}
	defer closeTickets(servers)
	if !o.Resize {
		return ticket.Init(ctx, servers, layout, o.Tags)
	}
	opts := ticket.ResizeOptions{Lost: o.Lost, Jump: o.Jump}
	if o.Retired != "" {
		_, retiredRest, err := find(o.Retired)
		if err != nil {
			return err
		}
		if opts.Retired, _, err = ticketServers(retiredRest, nil); err != nil {
			return err
		}
		defer closeTickets(opts.Retired)
	}
	return ticket.Resize(ctx, servers, layout, &opts)
}

func existsTicket(ctx context.Context, rest string) (bool, error) {
	servers, _, err := ticketServers(rest, nil)
	if err != nil {
		return false, err
	}
	defer closeTickets(servers)
	return ticket.Exists(ctx, servers)
}

// keyTicket returns the set of the servers: their order is of no account.
func keyTicket(rest string) (string, error) {
	_, keys, err := parseTicket(rest)
	slices.Sort(keys)
	return strings.Join(keys, ","), err
}

// parseTicket reads a URL of ticket servers, and returns their keys in its order.
func parseTicket(rest string) (u ticket.URL, keys []string, err error) {
	_, params, err := splitQuery(rest)
	if err == nil {
		err = onlyParams(params, append(mysqlParams(), "stride", "table_per_tag")...)
	}
	if err == nil {
		u, err = ticket.ParseURL(rest)
	}
	if err != nil {
		return ticket.URL{}, nil, err
	}
	for i, server := range u.Servers {
		key, err := keyMySQL(server)
		if err != nil {
			return ticket.URL{}, nil, fmt.Errorf("server %d: %w", i+1, err)
		}
		keys = append(keys, key)
	}
	return u, keys, nil
}

func ticketServers(rest string, logger *slog.Logger) ([]ticket.Server, ticket.Layout, error) {
	u, keys, err := parseTicket(rest)
	if err != nil {
		return nil, ticket.Layout{}, err
	}
	var servers []ticket.Server
	for i, server := range u.Servers {
		db, err := mysqlDB(server, logger)
		if err != nil {
			return nil, ticket.Layout{}, errors.Join(err, closeTickets(servers))
		}
		servers = append(servers, ticket.Server{Name: strings.TrimPrefix(keys[i], "//"), DB: db})
	}
	return servers, u.Layout, nil
}

func closeTickets(servers []ticket.Server) error {
	var errs []error
	for _, s := range servers {
		errs = append(errs, s.DB.Close())
	}
	return errors.Join(errs...)
}
