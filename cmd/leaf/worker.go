package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/worker"
)

// What must be true before a worker ID is freed.
const noteFree = `whoever held this worker ID must be stopped, and must stay stopped, or be able to
reach the registry: then it notices within seconds. Its IDs that lie more than two
minutes ahead of the clock are dealt out again. Without this command a worker ID is
free again by itself when its horizon has passed.`

func newWorker() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "worker",
		Short: "List and free worker IDs",
		Long: `List and free the worker IDs that time-based IDs are made with.

A server holds its worker ID on a lease: up to a time that it keeps moving ahead, the
horizon. A server that is stopped cleanly hands its worker ID back at once; that of
one that crashed is taken by others once the horizon has passed.

` + fmt.Sprintf(noteTarget, "workers", "registry", "LEAF_WORKERS"),
	})
	cmd.AddCommand(newWorkerList(), newWorkerFree())
	return cmd
}

func newWorkerList() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all worker IDs that were ever claimed",
		Long: `List all worker IDs that were ever claimed:

  HELD     whether somebody holds it; mine: the server that was asked does
  TERM     how many claims there were
  HORIZON  times up to there may have been used; whoever claims it next begins there
  SEEN     when it was last written, by the registry's clock
  CLOCK    how far the clock of who wrote it was ahead of the registry's

Where each start of a server uses up a worker ID (layout=worker_node), list the latest
100 starts instead, and how many are left.`,
		Example: `  leaf worker list
  leaf worker list --workers mysql://root:secret@db/leaf
  leaf worker list --workers 'mysql://root:secret@db/leaf?layout=worker_node'`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, func(admin workerAdmin) error {
				list, err := admin.list(cmd.Context())
				if err != nil {
					return err
				}
				if list.starts != nil {
					return printStarts(cmd.OutOrStdout(), *list.starts, f.json)
				}
				return printWorkers(cmd.OutOrStdout(), list.workers, f.json)
			})
		},
	}
	f.addFlags(cmd)
	return cmd
}

func newWorkerFree() *cobra.Command {
	var f workerFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "free ID",
		Short: "Make a worker ID claimable again",
		Long: `Make a worker ID claimable two minutes from now, instead of at its horizon. Needed
only where worker IDs run out, or one was claimed by a machine whose clock was far
ahead.

It asks before it does so; where there is no terminal it needs --yes.

Mind: ` + noteFree,
		Example: `  leaf worker free 17 --yes
  leaf worker free 17 --yes --workers zookeeper://zk1:2181`,
		Args: args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseUint(args[0], 10, 63)
			if err != nil {
				return usage(cmd, fmt.Errorf("%s is no worker ID", printable(args[0])))
			}
			return f.with(cmd, func(admin workerAdmin) error {
				say(cmd.ErrOrStderr(), "note", noteFree)
				if err := confirm(cmd, yes, fmt.Sprintf("free worker ID %d", id)); err != nil {
					return err
				}
				w, err := admin.free(cmd.Context(), int64(id))
				if err != nil {
					return err
				}
				if f.json {
					return printJSON(cmd.OutOrStdout(), w)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "freed worker ID %d: it can be claimed from %s on\n", id, moment(w.Horizon))
				return err
			})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask: the former holder is stopped and will not start again")
	return cmd
}

// A workerRow is one worker ID as people see it.
type workerRow struct {
	Worker      int64         `json:"worker,string"`
	Held        bool          `json:"held"`
	Mine        bool          `json:"mine"`
	Owner       string        `json:"owner"`
	Term        int64         `json:"term,string"`
	Horizon     time.Time     `json:"horizon,omitzero"`
	Seen        time.Time     `json:"seen,omitzero"`
	ClockOffset time.Duration `json:"clock_offset_ns"`
	Layouts     []string      `json:"layouts"`
}

func printWorkers(w io.Writer, list []workerRow, asJSON bool) error {
	if asJSON {
		return printJSON(w, list)
	}
	return printTable(w, "WORKER\tHELD\tTERM\tHORIZON\tSEEN\tCLOCK\tOWNER\tLAYOUTS", func(row func(...string)) {
		for _, r := range list {
			held := choose(r.Mine, "mine", choose(r.Held, "yes", "no"))
			row(decimal(r.Worker), held, decimal(r.Term), moment(r.Horizon), moment(r.Seen), r.ClockOffset.String(), r.Owner, strings.Join(r.Layouts, ","))
		}
	})
}

// startRows are the starts of servers as people see them, the last one first.
type startRows struct {
	Used   int64      `json:"used"`
	Max    int64      `json:"max,omitzero"` // 0: not known
	Left   int64      `json:"left"`         // says nothing without max
	Latest []startRow `json:"latest"`
}

type startRow struct {
	Worker int64  `json:"worker,string"`
	Mine   bool   `json:"mine"`
	Host   string `json:"host"`
	Port   string `json:"port"`
	Type   string `json:"type"`
	Date   string `json:"launch_date"`
}

func printStarts(w io.Writer, s startRows, asJSON bool) error {
	if asJSON {
		return printJSON(w, s)
	}
	err := printTable(w, "WORKER\tMINE\tADDRESS\tTYPE\tLAUNCHED", func(row func(...string)) {
		for _, r := range s.Latest {
			row(decimal(r.Worker), choose(r.Mine, "mine", "-"), net.JoinHostPort(r.Host, r.Port), r.Type, r.Date)
		}
	})
	if err != nil {
		return err
	}
	if s.Max > 0 {
		_, err = fmt.Fprintf(w, "\nused %d of %d starts, %d left\n", s.Used, s.Max, s.Left)
		return err
	}
	_, err = fmt.Fprintf(w, "\nused %d starts; a layout of 19 worker bits has %d left, one of 22 bits %d\n",
		s.Used, max(1<<19-1-s.Used, 0), max(1<<22-1-s.Used, 0))
	return err
}

// A workerList holds the worker IDs by number, or the starts that have used them up.
type workerList struct {
	workers []workerRow
	starts  *startRows
}

// A workerAdmin administers worker IDs, through a server or on the registry itself.
type workerAdmin interface {
	list(ctx context.Context) (workerList, error)
	free(ctx context.Context, id int64) (workerRow, error)
}

// workerFlags say what a worker command acts on.
type workerFlags struct {
	client
	workers urlFlag
	json    bool
}

func (f *workerFlags) addFlags(cmd *cobra.Command) {
	f.client.addFlags(cmd)
	f.workers = workersFlag()
	f.workers.addFlags(cmd, instead)
	outputVar(cmd, &f.json)
}

// with runs do with what the flags name.
func (f *workerFlags) with(cmd *cobra.Command, do func(workerAdmin) error) error {
	url, err := f.target(cmd, &f.workers)
	if err != nil {
		return err
	}
	if url == "" {
		admin, err := f.admin()
		if err != nil {
			return err
		}
		return do(&serverWorkers{&f.client, admin})
	}
	b, err := drivers.Open(url, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	registry, err := b.Registry(&drivers.RegistryOptions{Observe: true})
	if err != nil {
		return err
	}
	return do(&registryWorkers{issuer.NewWorkers(registry, nil, nil), url, f.timeout})
}

// serverWorkers administers worker IDs through a server.
type serverWorkers struct {
	client *client
	admin  leafv1connect.AdminServiceClient
}

func (s *serverWorkers) list(ctx context.Context) (workerList, error) {
	res, err := call(ctx, s.client, s.admin.ListWorkers, &leafv1.ListWorkersRequest{})
	if err != nil {
		return workerList{}, err
	}
	if st := res.GetStarts(); st != nil {
		starts := startRows{Used: st.GetUsed(), Max: st.GetMax(), Left: st.GetLeft(), Latest: []startRow{}}
		for _, l := range st.GetLatest() {
			starts.Latest = append(starts.Latest, startRow{l.GetWorker(), l.GetMine(), l.GetHost(), l.GetPort(), l.GetKind(), l.GetDate()})
		}
		return workerList{starts: &starts}, nil
	}
	rows := make([]workerRow, 0, len(res.GetWorkers()))
	for _, w := range res.GetWorkers() {
		rows = append(rows, workerFromWire(w))
	}
	return workerList{workers: rows}, nil
}

func (s *serverWorkers) free(ctx context.Context, id int64) (workerRow, error) {
	res, err := call(ctx, s.client, s.admin.FreeWorker, &leafv1.FreeWorkerRequest{Worker: &id})
	return workerFromWire(res.GetWorker()), err
}

func workerFromWire(w *leafv1.Worker) workerRow {
	row := workerRow{
		Worker: w.GetWorker(), Held: w.GetHeld(), Mine: w.GetMine(), Owner: w.GetOwner(), Term: w.GetTerm(),
		ClockOffset: w.GetClockOffset().AsDuration(), Layouts: w.GetLayouts(),
	}
	if w.GetHorizon() != nil {
		row.Horizon = w.GetHorizon().AsTime()
	}
	if w.GetSeen() != nil {
		row.Seen = w.GetSeen().AsTime()
	}
	return row
}

// registryWorkers administers the worker IDs of a registry that this process opened.
type registryWorkers struct {
	workers *issuer.Workers
	url     string
	timeout time.Duration
}

// call runs do within the time-out and explains its error.
func (r *registryWorkers) call(ctx context.Context, do func(ctx context.Context) error) error {
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	return explainRegistry(do(ctx), r.url, time.Since(start))
}

func (r *registryWorkers) list(ctx context.Context) (list workerList, err error) {
	err = r.call(ctx, func(ctx context.Context) error {
		starts, supply, once, err := r.workers.Starts(ctx)
		if err != nil || once {
			list.starts = startsOf(starts, supply)
			return err
		}
		records, err := r.workers.List(ctx)
		list.workers = make([]workerRow, 0, len(records))
		for _, record := range records {
			list.workers = append(list.workers, workerFromRecord(record))
		}
		return err
	})
	return list, err
}

func startsOf(starts []worker.Start, supply worker.Supply) *startRows {
	rows := startRows{Used: supply.Used, Max: supply.Max, Left: supply.Left(), Latest: []startRow{}}
	for _, s := range starts {
		rows.Latest = append(rows.Latest, startRow{Worker: s.Worker, Host: s.Host, Port: s.Port, Type: s.Kind, Date: s.Date})
	}
	return &rows
}

func (r *registryWorkers) free(ctx context.Context, id int64) (row workerRow, err error) {
	err = r.call(ctx, func(ctx context.Context) error {
		record, err := r.workers.Free(ctx, id)
		row = workerFromRecord(record)
		return err
	})
	return row, err
}

func workerFromRecord(r worker.Record) workerRow {
	row := workerRow{
		Worker: r.Worker, Held: r.Held(), Owner: r.Owner, Term: r.Term,
		Horizon: worker.Time(r.Horizon), Seen: worker.Time(r.Seen), ClockOffset: time.Duration(r.Offset) * time.Millisecond,
	}
	for _, l := range r.Layouts {
		row.Layouts = append(row.Layouts, l.Name)
	}
	return row
}
