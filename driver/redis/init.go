package redis

import (
	"context"
	"fmt"

	"github.com/leaf-id/leaf/segment"
)

// InitStore creates the keys of a store that config names, with tags in it. It fails,
// wrapping [io/fs.ErrExist], if there is one under the prefix, and leaves it as it is.
func InitStore(ctx context.Context, config Config, tags []segment.Tag) error {
	if err := segment.CheckTags(tags); err != nil {
		return fmt.Errorf("create redis store: %w", err)
	}
	config = config.complete()
	cmd := command{keys: []string{config.key("tags")}}
	for _, tag := range tags {
		cmd.keys = append(cmd.keys, config.key("alloc:"+tag.Name))
		cmd.args = append(cmd.args, tag.Name, tag.MaxID, tag.Step, tag.Description)
	}
	if err := create(ctx, config, storeUse(), cmd); err != nil {
		return fmt.Errorf("create redis store: %w", err)
	}
	return nil
}

// InitRegistry creates the keys of a registry that config names. It fails, wrapping
// [io/fs.ErrExist], if there is one under the prefix, and leaves it as it is.
func InitRegistry(ctx context.Context, config Config) error {
	config = config.complete()
	if err := create(ctx, config, registryUse(), command{keys: []string{config.key("workers")}}); err != nil {
		return fmt.Errorf("create redis registry: %w", err)
	}
	return nil
}

// ExistsStore reports whether [InitStore] has created the store that config names.
func ExistsStore(ctx context.Context, config Config) (bool, error) {
	return exists(ctx, config, storeUse())
}

// ExistsRegistry reports whether [InitRegistry] has created the registry that config
// names.
func ExistsRegistry(ctx context.Context, config Config) (bool, error) {
	return exists(ctx, config, registryUse())
}

func create(ctx context.Context, config Config, u use, cmd command) error {
	c, err := newClient(config, (*Options)(nil).logger())
	if err != nil {
		return err
	}
	defer c.close()
	cmd.script, cmd.confirm = c.scripts.init, true
	cmd.keys = append([]string{config.key(u.marker)}, cmd.keys...)
	a, err := attempt(ctx, c, func() (answer, error) { return c.run(ctx, cmd) })
	switch {
	case err != nil:
		return err
	case a.status == answerExists:
		return existsError{config.Prefix}
	case a.status != answerOK:
		return c.failed(u, a, config.key(u.marker))
	}
	return nil
}

func exists(ctx context.Context, config Config, u use) (bool, error) {
	config = config.complete()
	c, err := newClient(config, (*Options)(nil).logger())
	if err != nil {
		return false, err
	}
	defer c.close()
	a, err := attempt(ctx, c, func() (answer, error) {
		return c.run(ctx, command{script: c.scripts.exists, keys: []string{config.key(u.marker)}})
	})
	if err != nil {
		return false, err
	}
	return len(a.rest) == 1 && a.rest[0] != "", nil
}
