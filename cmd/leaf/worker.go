package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/cli"
)

// What must be true before a worker ID is freed.
const noteFree = `the server that held this worker ID must be stopped, and must stay stopped, or be able
to reach the registry: then it notices within seconds. Its IDs that lie more than two
minutes ahead of the clock are issued again. Without this command a worker ID is
free again by itself when its horizon has passed.`

func newWorker() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "worker",
		Short: "List, free and lease worker IDs",
		Long: `List and free the worker IDs that time-based IDs are made with, and lease worker IDs to
other programs.

A server holds its worker ID on a lease: up to a time that it keeps moving ahead, the
horizon. A server that is stopped cleanly hands its worker ID back at once; that of
one that crashed is taken by others once the horizon has passed.

` + fmt.Sprintf(noteTarget, "workers", "registry", "LEAF_WORKERS"),
	})
	cmd.AddCommand(newWorkerList(), newWorkerFree(), newWorkerPool(), newWorkerLease())
	return cmd
}

func newWorkerList() *cobra.Command {
	var a admin
	var pool string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all worker IDs that were ever claimed",
		Long: `List all worker IDs that were ever claimed:

  HELD     whether a server holds it; mine: the server that was asked does
  TERM     how many claims there were
  HORIZON  times up to there may have been used; the next holder begins there
  SEEN     when it was last written, by the registry's clock
  CLOCK    how far the clock of its holder was ahead of the registry's

Where each start of a server uses up a worker ID (layout=worker_node), list the latest
100 starts instead, and how many are left.`,
		Example: `  leaf worker list
  leaf worker list --pool orders
  leaf worker list --workers mysql://root:secret@db/leaf
  leaf worker list --workers 'mysql://root:secret@db/leaf?layout=worker_node'`,
		Args: args(),
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			res, err := cli.Call(cmd.Context(), &a.Client, a.calls.ListWorkers, &leafv1.ListWorkersRequest{Pool: pool})
			if err != nil {
				return err
			}
			if res.GetStarts() != nil {
				return printStarts(cmd.OutOrStdout(), startsFromWire(res.GetStarts()), a.json)
			}
			return printList(cmd.OutOrStdout(), rowsOf(res.GetWorkers(), workerFromWire), a.json,
				"WORKER\tHELD\tTERM\tHORIZON\tSEEN\tCLOCK\tOWNER\tLAYOUTS", workerRow.cells)
		}),
	}
	a.addFlags(cmd, workersFlag())
	cmd.Flags().StringVar(&pool, "pool", "", "list the worker IDs of this `POOL` of other programs")
	return cmd
}

func newWorkerFree() *cobra.Command {
	var a admin
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
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil || id < 0 {
				return cli.Usage(cmd, fmt.Errorf("%s is not a worker ID", cli.Printable(args[0])))
			}
			return a.with(cmd, func() error {
				listed, err := cli.Call(cmd.Context(), &a.Client, a.calls.ListWorkers, &leafv1.ListWorkersRequest{})
				if err != nil {
					return err
				}
				if listed.GetStarts() == nil { // otherwise FreeWorker reports that it has nothing to free
					cli.Say(cmd, "note", noteFree)
					if err := confirm(cmd, yes, fmt.Sprintf("free worker ID %d", id)); err != nil {
						return err
					}
				}
				res, err := cli.Call(cmd.Context(), &a.Client, a.calls.FreeWorker, &leafv1.FreeWorkerRequest{Worker: &id})
				if err != nil {
					return err
				}
				w := workerFromWire(res.GetWorker())
				return cli.Print(cmd.OutOrStdout(), a.json, w, "freed worker ID %d: it can be claimed from %s on\n", id, moment(w.Horizon))
			})
		},
	}
	a.addChangeFlags(cmd, workersFlag())
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

func (r workerRow) cells() []string {
	held := cli.Choose(r.Mine, "mine", cli.Choose(r.Held, "yes", "no"))
	owner, _, _ := strings.Cut(r.Owner, " leaf ") // the version and the digests of the configuration are for programs
	return []string{decimal(r.Worker), held, decimal(r.Term), moment(r.Horizon), moment(r.Seen), r.ClockOffset.String(), owner,
		strings.Join(r.Layouts, ",")}
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
		return cli.PrintJSON(w, s)
	}
	err := printTable(w, s.Latest, "WORKER\tMINE\tADDRESS\tTYPE\tLAUNCHED", func(r startRow) []string {
		return []string{decimal(r.Worker), cli.Choose(r.Mine, "mine", "-"), net.JoinHostPort(r.Host, r.Port), r.Type, r.Date}
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

func startsFromWire(s *leafv1.Starts) startRows {
	latest := rowsOf(s.GetLatest(), func(l *leafv1.Start) startRow {
		return startRow{l.GetWorker(), l.GetMine(), l.GetHost(), l.GetPort(), l.GetKind(), l.GetDate()}
	})
	return startRows{s.GetUsed(), s.GetMax(), s.GetLeft(), latest}
}

func workerFromWire(w *leafv1.Worker) workerRow {
	return workerRow{
		Worker: w.GetWorker(), Held: w.GetHeld(), Mine: w.GetMine(), Owner: w.GetOwner(), Term: w.GetTerm(),
		Horizon: timeOf(w.GetHorizon()), Seen: timeOf(w.GetSeen()),
		ClockOffset: w.GetClockOffset().AsDuration(), Layouts: w.GetLayouts(),
	}
}
