package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/segment"
)

// An admin administers tags or worker IDs, through a server or on the store or registry
// itself, with the same calls.
type admin struct {
	cli.Client
	flag  urlFlag // of the store or registry
	json  bool
	audit bool
	url   string // of the store or registry that the command changes; "": none
	calls leafv1connect.AdminServiceClient
}

func (a *admin) addFlags(cmd *cobra.Command, flag urlFlag) {
	a.Client.AddFlags(cmd)
	a.flag = flag
	a.flag.addFlags(cmd, instead)
	cli.OutputVar(cmd, &a.json)
}

// addChangeFlags defines the flags of commands that change something.
func (a *admin) addChangeFlags(cmd *cobra.Command, flag urlFlag) {
	a.addFlags(cmd, flag)
	cmd.Flags().BoolVar(&a.audit, "audit", false, "with --"+a.flag.name+": write to stderr who changes what, as a server does to its log")
}

// runs returns a function for cobra that runs do with the flags' target.
func (a *admin) runs(do func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return a.with(cmd, func() error { return do(cmd, args) })
	}
}

func (a *admin) with(cmd *cobra.Command, do func() error) (err error) {
	if a.url, err = target(cmd, &a.Client, &a.flag); err != nil {
		return err
	}
	if a.url == "" {
		if a.calls, err = cli.Open(&a.Client, leafv1connect.NewAdminServiceClient); err != nil {
			return err
		}
		return do()
	}
	a.Explain = func(err error, took time.Duration) error { return a.flag.explainCall(err, a.url, took) }
	b, err := drivers.Open(a.url, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	opts := &frontend.Options{IDs: issuer.New(nil, nil)}
	if a.flag.name == "workers" {
		registry, err := b.Registry(&drivers.RegistryOptions{Observe: true})
		if err != nil {
			return err
		}
		opts.Workers = issuer.NewWorkers(registry, nil, a.auditLog(cmd))
	} else {
		store, err := b.Store()
		if err != nil {
			return err
		}
		opts.Tags = issuer.NewTags(store, nil, a.auditLog(cmd))
	}
	a.calls = rpcapi.NewAdmin(opts)
	cmd.SetContext(issuer.WithActor(cmd.Context(), issuer.Actor{Name: userName(), From: "command line, " + drivers.Redact(a.url)}))
	return do()
}

// auditLog returns a log of the command's own changes, if enabled, and of nothing else: the command
// prints its problems itself.
func (a *admin) auditLog(cmd *cobra.Command) *slog.Logger {
	if !a.audit {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelError + 1}))
}

func userName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return strconv.Itoa(os.Getuid()) + "@" + host
}

// warn prints the consequence of the command.
func (a *admin) warn(cmd *cobra.Command, note string) {
	if a.url != "" {
		note += "\n" + noteStore
	}
	cli.Say(cmd, "note", note)
}

func (a *admin) listTags(ctx context.Context) ([]tagRow, error) {
	tags := []tagRow{}
	for t, err := range leafconn.TagPages(func(req *leafv1.ListTagsRequest) (*leafv1.ListTagsResponse, error) {
		return cli.Call(ctx, &a.Client, a.calls.ListTags, req)
	}) {
		if err != nil {
			return nil, err
		}
		tags = append(tags, fromWire(t))
	}
	return tags, nil
}

func (a *admin) createTag(ctx context.Context, tag segment.Tag) (tagRow, error) {
	res, err := cli.Call(ctx, &a.Client, a.calls.CreateTag, leafconn.CreateRequest(tag))
	if err == nil {
		err = leafconn.CheckOptions(tag.Options, res.GetTag())
	}
	return fromWire(res.GetTag()), explainTag(err, tag.Name)
}

func (a *admin) alterTag(ctx context.Context, name string, c issuer.Change) (tagRow, error) {
	req := leafconn.AlterRequest(name, c.Change)
	req.RaiseBy = c.RaiseBy
	res, err := cli.Call(ctx, &a.Client, a.calls.AlterTag, req)
	if err == nil {
		err = leafconn.CheckOptions(c.Options, res.GetTag())
	}
	return fromWire(res.GetTag()), explainTag(err, name)
}

func (a *admin) deleteTag(ctx context.Context, name string) error {
	_, err := cli.Call(ctx, &a.Client, a.calls.DeleteTag, &leafv1.DeleteTagRequest{Name: name})
	return explainTag(err, name)
}

func fromWire(t *leafv1.Tag) tagRow {
	tag := leafconn.Tag(t)
	return tagRow{tag.Name, tag.MaxID, tag.Step, tag.Options.Description(), tag.Options.Others(), tag.Updated}
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
		return cli.Hinted(err, "create it with 'leaf tag create %s', or see 'leaf tag list' for its right name", shellWord(name))
	case is(leaf.ErrTagExists, connect.CodeAlreadyExists):
		return cli.Hinted(err, "change it with 'leaf tag set %s'", shellWord(name))
	case is(leaf.ErrRegression, connect.CodeFailedPrecondition):
		return cli.Hinted(err, "--force lowers it all the same; 'leaf tag set --help' says what that does")
	}
	return err
}

func isHinted(err error) bool {
	own, ok := errors.AsType[*cli.Error](err)
	return ok && own.Hint != ""
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
