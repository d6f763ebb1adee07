package drivers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/foreign"
	"github.com/leaf-id/leaf/segment"
)

// ReadForeign returns the counters of other systems behind a URL, and those of another store of
// Leaf's own. For MySQL it adds the AUTO_INCREMENT of the tables in increments. It changes nothing.
func ReadForeign(ctx context.Context, rawURL string, increments []string) (found foreign.Found, err error) {
	u, err := find(rawURL)
	if err == nil {
		found, err = u.readForeign(ctx, increments)
	}
	if err == nil && (u.scheme != "mysql" || slices.ContainsFunc(found.Counters, foreign.Counter.Own)) {
		var own foreign.Found
		own, err = readOwn(ctx, rawURL)
		if u.scheme == "mysql" {
			found.Describe(own)
		} else {
			found.Add(own)
		}
	}
	if err != nil {
		return found, fmt.Errorf("URL %s: %w", Redact(rawURL), err)
	}
	return found, nil
}

func (u *target) readForeign(ctx context.Context, increments []string) (found foreign.Found, err error) {
	switch {
	case u.scheme == "mysql":
		return u.foreignMySQL(ctx, increments)
	case len(increments) > 0:
		return found, invalid("only MySQL has tables with an AUTO_INCREMENT")
	case strings.HasPrefix(u.scheme, "redis"):
		return u.foreignRedis(ctx)
	}
	return found, nil
}

func (u *target) foreignMySQL(ctx context.Context, increments []string) (foreign.Found, error) {
	connector := u.mysqlConnector()
	if err := u.check(); err != nil {
		return foreign.Found{}, err
	}
	pool := newPool(connector)
	defer pool.Close()
	return foreign.MySQL(ctx, pool, increments)
}

func (u *target) foreignRedis(ctx context.Context) (foreign.Found, error) {
	c := u.redisConfig()
	if err := u.check(); err != nil {
		return foreign.Found{}, err
	}
	o := &goredis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Master, Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLS,
		SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword, IsClusterMode: c.Mode == redis.Cluster,
		Protocol: 2, DisableIdentity: true, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	client := goredis.NewUniversalClient(o)
	defer client.Close()
	return foreign.Redis(ctx, client)
}

// readOwn reads the tags of a store of Leaf's own; none where it was not created. Other ticket servers
// are counters of MySQL.
func readOwn(ctx context.Context, rawURL string) (found foreign.Found, err error) {
	u, err := find(rawURL)
	if err != nil {
		return found, err
	}
	b, err := u.backend(Redact(rawURL))
	if err != nil {
		return found, err
	}
	defer b.Close()
	store, err := b.Store()
	if err != nil {
		return found, err
	}
	for tag, err := range store.Tags(ctx) {
		switch {
		case errors.Is(err, segment.ErrNotCreated) && u.scheme == "ticket+mysql":
			return found, invalid("it is no set of Leaf's: name each ticket server by a mysql: URL of its own")
		case errors.Is(err, segment.ErrNotCreated):
			return found, nil
		case err != nil:
			return found, err
		}
		next, err := highest(ctx, store, tag)
		if err != nil {
			return found, err
		}
		found.Counters = append(found.Counters, foreign.Counter{System: foreign.Leaf, Table: "tags", Name: tag.Name, Next: next, Step: tag.Step, Options: tag.Options})
	}
	return found, nil
}

// highest returns the highest of a tag's own counter and those of its periods. A listing of ticket
// servers leaves out those that do not answer, but a change, of nothing here, needs them all.
func highest(ctx context.Context, store segment.Store, tag segment.Tag) (int64, error) {
	next := tag.MaxID
	if all, ok := store.(*ticket.Store); ok {
		tag, err := all.Alter(ctx, tag.Name, segment.Change{})
		return tag.MaxID, err
	}
	if !tag.Options.Periodic() {
		return next, nil
	}
	catalog, ok := store.(segment.PeriodCatalog)
	if !ok {
		return 0, leaf.ErrUnsupported
	}
	periods, err := catalog.Periods(ctx, tag.Name)
	for _, p := range periods {
		next = max(next, p.MaxID)
	}
	return next, err
}
