package issuer

import (
	"context"
	"log/slog"

	"github.com/leaf-id/leaf/segment"
)

// An Actor is who changes something, for the audit log. It holds no secret.
type Actor struct {
	Name string // of a token, a certificate or a user
	From string // an address, or what runs in this process
}

type actorKey struct{}

// WithActor returns a context whose changes are those of a.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// audit logs a change, at any level of the log: its author and address, and the tag before and
// after; nil: it did not exist, or is unknown.
func audit(ctx context.Context, log *slog.Logger, what string, before, after *segment.Tag, args ...any) {
	actor, _ := ctx.Value(actorKey{}).(Actor)
	args = append(args, "by", actor.Name, "from", actor.From)
	for i, tag := range []*segment.Tag{before, after} {
		if tag != nil {
			name := []string{"before", "after"}[i]
			about := []any{"max_id", tag.MaxID, "step", tag.Step, "description", tag.Options.Description()}
			for option, value := range tag.Options.Others() {
				about = append(about, option, value)
			}
			args = append(args, slog.Group(name, about...))
		}
	}
	slog.New(unfiltered{log.Handler()}).InfoContext(ctx, "audit: "+what, args...)
}

// unfiltered logs at every level.
type unfiltered struct{ slog.Handler }

func (unfiltered) Enabled(context.Context, slog.Level) bool { return true }

// before returns a tag as the store has it, nil if that cannot be known.
func (t *Tags) before(ctx context.Context, name string) *segment.Tag {
	for tag, err := range t.store.Tags(ctx) {
		switch {
		case err != nil:
			return nil
		case tag.Name == name:
			return &tag
		}
	}
	return nil
}
