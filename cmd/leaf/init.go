package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/drivers"
)

type initFlags struct {
	store, workers urlFlag
	resize         bool
	retired        string
	lost           []string
	jump           int64
	timeout        time.Duration
	json           bool
}

func newInit() *cobra.Command {
	f := initFlags{store: storeFlag(), workers: workersFlag()}
	cmd := &cobra.Command{
		Use:   "init --store URL | --workers URL",
		Short: "Create what a store, or worker IDs, need",
		Long: `Create what a store needs: the file, for SQLite, and the table leaf_alloc, as Java
Leaf has it. No tag is created. What exists already stays as it is: it is looked at as a
server would, which is an error if it cannot be used.

With --workers, create what worker IDs for time-based IDs need: the table leaf_worker,
which may stand beside leaf_alloc, or the nodes in ZooKeeper. With both flags, create
both. With neither, create what the environment names as it does for a server:
LEAF_STORE or LEAF_STORE_FILE, LEAF_WORKERS or LEAF_WORKERS_FILE.

A server never does this by itself, so that a mistyped address cannot start the
counters again; except that 'leaf serve' without any store makes its embedded one, and
that layout=leaf makes the nodes that Java Leaf would make.

With --resize, the ticket servers in the URL become the set, which they or some of
them, with those in --retired, are already: every server must answer, nothing is issued
meanwhile, and it may be run again where it was cut off.

With --lost, ticket servers whose data is gone for good need not answer. Name them as
they stood in the URL: h2, h2:3307, or h2:3306/db. They leave the set, or begin anew
where the URL still names them and they are empty. All counters go on --jump above the
highest that is left. This assumes that no lost server was further ahead of the others
than that, and that its data never comes back into use.

Stores:
  sqlite:PATH                          a file on this machine's own disk
  mysql://user:password@host:3306/db   MySQL or MariaDB
  postgres://user:password@host/db     PostgreSQL
  etcd://h1:2379,h2:2379/prefix        etcd
  nats://h1:4222,h2:4222/STREAM        NATS JetStream; makes the stream
  zookeeper://h1:2181,h2:2181/chroot   ZooKeeper; the chroot, if any, must exist
  redis://user:password@host:6379/0    Redis; redis+sentinel://h1,h2/MASTER and
                                       redis+cluster://h1,h2 too; rediss over TLS
  ticket+mysql://u:p@h1/db,u:p@h2/db   Flickr's ticket servers; no worker IDs
Worker registries: the same, and
  mysql://…?layout=worker_node         uid-generator's table; leases are better
These need nothing created:
  zookeeper://h1:2181/chroot?layout=leaf&name=N&port=P
                                       Java Leaf's tree, beside Java servers
  static:7                             a number that you assign yourself`,
		Example: `  leaf init --store sqlite:/var/lib/leaf/ids.db
  leaf init --store mysql://root:secret@127.0.0.1:3306/leaf
  leaf tag create order --step 1000 --store mysql://root:secret@127.0.0.1:3306/leaf
  leaf init --workers mysql://root:secret@127.0.0.1:3306/leaf
  leaf init --resize --lost h2 --store ticket+mysql://u:p@h1/db,u:p@h3/db`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.store.addFlags(cmd, "")
	f.workers.addFlags(cmd, "")
	cmd.Flags().BoolVar(&f.resize, "resize", false, "change the number of ticket servers")
	cmd.Flags().StringVar(&f.retired, "retired", "", "`URL` of the ticket servers that leave the set; with --resize")
	cmd.Flags().StringSliceVar(&f.lost, "lost", nil, "`HOSTS` of ticket servers whose data is gone for good; with --resize")
	cli.WholeVar(cmd, &f.jump, "jump", "", ticket.DefaultJump, "more IDs than a lost server was ahead of the others; with --lost")
	cli.OutputVar(cmd, &f.json)
	cli.DurationVar(cmd, &f.timeout, "timeout", "", 10*time.Second, 1, "how long to wait for it")
	return cmd
}

// An initResult is what `leaf init -o json` prints.
type initResult struct {
	Store   *outcome `json:"store,omitempty"`
	Workers *outcome `json:"workers,omitempty"`
}

// An outcome says what became of one URL.
type outcome struct {
	URL    string `json:"url"` // without the password
	Result string `json:"result"`
	what   string
}

const (
	resultCreated = "created"
	resultExisted = "existed" // and can be used
	resultNothing = "nothing to create"
	resultResized = "resized"
)

// results are those of an init, each with its message about a thing and its URL.
var results = map[string]string{
	resultCreated: "created %s in %s",
	resultExisted: "%s exists already in %s: nothing to do",
	resultNothing: "%s %s needs nothing created: nothing to do",
	resultResized: "these ticket servers are the set now: %[2]s",
}

func (f *initFlags) run(cmd *cobra.Command) error {
	store, workers, err := f.urls(cmd)
	if err != nil {
		return err
	}
	if err := f.checkResize(cmd, store); err != nil {
		return err
	}
	var done initResult
	if done.Store, err = f.initPart(cmd, &f.store, store); err != nil {
		return err
	}
	done.Workers, err = f.initPart(cmd, &f.workers, workers)
	return errors.Join(err, f.print(cmd.OutOrStdout(), done))
}

// urls returns the URLs of the command line, or else of the environment.
func (f *initFlags) urls(cmd *cobra.Command) (store, workers string, err error) {
	read := func(u *urlFlag) (url string, err error) {
		if f.store.given() || f.workers.given() {
			return u.fromFlags(cmd)
		}
		url, _, err = u.fromEnv()
		return url, err
	}
	if store, err = read(&f.store); err == nil {
		workers, err = read(&f.workers)
	}
	if err == nil && store == "" && workers == "" {
		err = cli.Usage(cmd, errors.New("--store is missing, or --workers: say what to create"))
	}
	return store, workers, err
}

func (f *initFlags) checkResize(cmd *cobra.Command, store string) error {
	switch {
	case (f.retired != "" || len(f.lost) > 0) && !f.resize, f.resize && store == "":
		return cli.Usage(cmd, errors.New("--resize goes with --store, and --retired and --lost with --resize"))
	case cmd.Flags().Changed("jump") && (len(f.lost) == 0 || f.jump < 1):
		return cli.Usage(cmd, errors.New("--jump goes with --lost, and is at least 1"))
	}
	return nil
}

func (f *initFlags) print(w io.Writer, done initResult) error {
	var text strings.Builder
	for _, o := range []*outcome{done.Store, done.Workers} {
		if o != nil {
			fmt.Fprintf(&text, results[o.Result]+"\n", o.what, o.URL)
		}
	}
	return cli.Print(w, f.json, done, "%s", text.String())
}

// initPart creates, or resizes, the part of the flag at url; "": nothing.
func (f *initFlags) initPart(cmd *cobra.Command, flag *urlFlag, url string) (*outcome, error) {
	if url == "" {
		return nil, nil
	}
	b, err := drivers.Open(url, nil)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	start := time.Now()
	ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
	defer cancel()
	o := &outcome{URL: b.Name, what: "the " + flag.what}
	switch {
	case flag == &f.workers:
		o.Result, err = create(ctx, &b.Workers)
	case f.resize:
		o.Result, err = resultResized, f.resizeSet(ctx, cmd, b)
	default:
		o.Result, err = create(ctx, &b.Tags)
	}
	if err != nil {
		return nil, flag.explainCall(err, url, time.Since(start))
	}
	return o, nil
}

func (f *initFlags) resizeSet(ctx context.Context, cmd *cobra.Command, b *drivers.Backend) error {
	if !b.Traits.Ticket {
		return cli.Usage(cmd, errors.New("--resize is for ticket servers: only they have a number"))
	}
	if len(f.lost) > 0 {
		cli.Say(cmd, "note", fmt.Sprintf("this assumes that the data of %s never comes back into use, and that it had dealt\n"+
			"less than %d IDs beyond the furthest of the other servers (--jump)", strings.Join(f.lost, " and "), f.jump))
	}
	return b.Resize(ctx, drivers.Resize{Retired: f.retired, Lost: f.lost, Jump: f.jump})
}

// create runs an init. An existing part that passes its check is fine. If the part is incomplete,
// the error of the check tells.
func create(ctx context.Context, part *drivers.Part) (result string, err error) {
	err = part.Init(ctx)
	switch {
	case errors.Is(err, drivers.ErrNothingToCreate):
		return resultNothing, nil
	case errors.Is(err, fs.ErrExist):
		if ok, existsErr := part.Exists(ctx); ok && existsErr == nil {
			return resultExisted, part.Check(ctx)
		}
	}
	return resultCreated, err
}
