package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// A tagAdmin administers tags, through a server or on the store itself.
type tagAdmin interface {
	list(ctx context.Context) ([]segment.Tag, error) // sorted by name
	create(ctx context.Context, tag segment.Tag) (segment.Tag, error)
	alter(ctx context.Context, name string, change issuer.Change) (segment.Tag, error)
	delete(ctx context.Context, name string) error
}

// adminFlags say what a tag command acts on, and how it prints what came of it.
type adminFlags struct {
	client
	store urlFlag
	json  bool
	url   string // of the store that is acted on; "": of none
}

func (a *adminFlags) addFlags(cmd *cobra.Command) {
	a.client.addFlags(cmd)
	a.store = storeFlag()
	a.store.addFlags(cmd, instead)
	outputVar(cmd, &a.json)
}

// with runs do with what the flags name.
func (a *adminFlags) with(cmd *cobra.Command, do func(tagAdmin) error) error {
	url, err := a.target(cmd, &a.store)
	if err != nil {
		return err
	}
	if a.url = url; url == "" {
		admin, err := a.admin()
		if err != nil {
			return err
		}
		return do(&serverAdmin{&a.client, admin})
	}
	b, err := drivers.Open(url, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	store, err := b.Store()
	if err != nil {
		return err
	}
	return do(&storeAdmin{issuer.NewTags(store, nil, nil), url, a.timeout})
}

// warn tells what the command is about to mean.
func (a *adminFlags) warn(cmd *cobra.Command, note string) {
	if a.url != "" {
		note += "\n" + noteStore
	}
	say(cmd.ErrOrStderr(), "note", note)
}

// A serverAdmin administers tags through a server.
type serverAdmin struct {
	client *client
	admin  leafv1connect.AdminServiceClient
}

func (s *serverAdmin) list(ctx context.Context) ([]segment.Tag, error) {
	res, err := call(ctx, s.client, s.admin.ListTags, &leafv1.ListTagsRequest{})
	if err != nil {
		return nil, err
	}
	tags := make([]segment.Tag, 0, len(res.GetTags()))
	for _, t := range res.GetTags() {
		tags = append(tags, fromWire(t))
	}
	return tags, nil
}

func (s *serverAdmin) create(ctx context.Context, tag segment.Tag) (segment.Tag, error) {
	res, err := call(ctx, s.client, s.admin.CreateTag, &leafv1.CreateTagRequest{
		Name: tag.Name, Step: tag.Step, MaxId: &tag.MaxID, Description: tag.Description,
	})
	return fromWire(res.GetTag()), explainTag(err, tag.Name)
}

func (s *serverAdmin) alter(ctx context.Context, name string, c issuer.Change) (segment.Tag, error) {
	res, err := call(ctx, s.client, s.admin.AlterTag, &leafv1.AlterTagRequest{
		Name: name, Step: c.Step, MaxId: c.MaxID, Force: c.Force, Description: c.Description, RaiseBy: c.RaiseBy,
	})
	return fromWire(res.GetTag()), explainTag(err, name)
}

func (s *serverAdmin) delete(ctx context.Context, name string) error {
	_, err := call(ctx, s.client, s.admin.DeleteTag, &leafv1.DeleteTagRequest{Name: name})
	return explainTag(err, name)
}

func fromWire(t *leafv1.Tag) segment.Tag {
	tag := segment.Tag{Name: t.GetName(), MaxID: t.GetMaxId(), Step: t.GetStep(), Description: t.GetDescription()}
	if t.GetUpdated() != nil {
		tag.Updated = t.GetUpdated().AsTime()
	}
	return tag
}

// A storeAdmin administers the tags of a store that this process opened.
type storeAdmin struct {
	tags    *issuer.Tags
	url     string
	timeout time.Duration
}

// call runs do within the time-out and explains its error.
func (s *storeAdmin) call(ctx context.Context, do func(ctx context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return explainStore(do(ctx), s.url, time.Since(start))
}

func (s *storeAdmin) list(ctx context.Context) (tags []segment.Tag, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		for tag, err := range s.tags.All(ctx) {
			if err != nil {
				return err
			}
			tags = append(tags, tag)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(tags, func(a, b segment.Tag) int { return cmp.Compare(a.Name, b.Name) })
	return tags, nil
}

func (s *storeAdmin) create(ctx context.Context, tag segment.Tag) (created segment.Tag, err error) {
	err = s.call(ctx, func(ctx context.Context) (err error) {
		created, err = s.tags.Create(ctx, tag)
		return err
	})
	return created, explainTag(err, tag.Name)
}

func (s *storeAdmin) alter(ctx context.Context, name string, change issuer.Change) (tag segment.Tag, err error) {
	err = s.call(ctx, func(ctx context.Context) (err error) {
		tag, err = s.tags.Alter(ctx, name, change)
		return err
	})
	return tag, explainTag(err, name)
}

func (s *storeAdmin) delete(ctx context.Context, name string) error {
	err := s.call(ctx, func(ctx context.Context) error { return s.tags.Delete(ctx, name) })
	return explainTag(err, name)
}

// explainTag adds to err what to do where the tag itself is the trouble.
func explainTag(err error, name string) error {
	is := func(sentinel error, code connect.Code) bool {
		return errors.Is(err, sentinel) || connect.CodeOf(err) == code
	}
	switch {
	case err == nil:
		return nil
	case isHinted(err):
		return err
	case is(leaf.ErrUnknownTag, connect.CodeNotFound):
		return hinted(err, "create it with 'leaf tag create %s', or see 'leaf tag list' for its right name", shellWord(name))
	case is(leaf.ErrTagExists, connect.CodeAlreadyExists):
		return hinted(err, "change it with 'leaf tag set %s'", shellWord(name))
	case is(leaf.ErrRegression, connect.CodeFailedPrecondition):
		return hinted(err, "--force lowers it all the same; 'leaf tag set --help' says what that does")
	}
	return err
}

func isHinted(err error) bool {
	_, ok := errors.AsType[*cliError](err)
	return ok
}

// shellWord writes name so that it can be pasted into a shell.
func shellWord(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/@", r)
	}
	if name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) && name[0] != '-' {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
