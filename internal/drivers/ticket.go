package drivers

import (
	"context"
	"errors"
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
	var retired []ticket.Server
	if o.Retired != "" {
		_, retiredRest, err := find(o.Retired)
		if err != nil {
			return err
		}
		if retired, _, err = ticketServers(retiredRest, nil); err != nil {
			return err
		}
		defer closeTickets(retired)
	}
	return ticket.Resize(ctx, servers, retired, layout)
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
	u, err := ticket.ParseURL(rest)
	if err != nil {
		return "", err
	}
	keys := make([]string, len(u.Servers))
	for i, server := range u.Servers {
		if keys[i], err = keyMySQL(server); err != nil {
			return "", err
		}
	}
	slices.Sort(keys)
	return strings.Join(keys, ","), nil
}

func ticketServers(rest string, logger *slog.Logger) ([]ticket.Server, ticket.Layout, error) {
	u, err := ticket.ParseURL(rest)
	if err != nil {
		return nil, ticket.Layout{}, err
	}
	var servers []ticket.Server
	for _, server := range u.Servers {
		key, err := keyMySQL(server)
		if err == nil {
			db, dbErr := mysqlDB(server, logger)
			err = dbErr
			servers = append(servers, ticket.Server{Name: strings.TrimPrefix(key, "//"), DB: db})
		}
		if err != nil {
			return nil, ticket.Layout{}, errors.Join(err, closeTickets(servers))
		}
	}
	return servers, u.Layout, nil
}

func closeTickets(servers []ticket.Server) error {
	var errs []error
	for _, s := range servers {
		if s.DB != nil {
			errs = append(errs, s.DB.Close())
		}
	}
	return errors.Join(errs...)
}
