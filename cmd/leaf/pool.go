package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/snowflake"
)

func newWorkerPool() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "pool",
		Short: "Create and list pools of worker IDs for other programs",
		Long: `Create and list pools of worker IDs. A program with a snowflake generator of its own
leases a worker ID from a pool: by POST /v1/workers/leases, by WorkerService.ClaimLease, or
with 'leaf worker lease'.`,
	})
	cmd.AddCommand(newPoolCreate(), newPoolList())
	return cmd
}

func newPoolCreate() *cobra.Command {
	var a admin
	var layout string
	var maxTTL, claimDelay time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME --layout LAYOUT",
		Short: "Create a pool of worker IDs",
		Long: `Create a pool of worker IDs. Its layout never changes: every program of the pool must
make its IDs with these bits, from this epoch on. The layout is the name of a built-in one
(` + strings.Join(snowflake.PresetNames(), ", ") + `), or its values.

The same command again changes nothing; a pool with other values is left alone.`,
		Example: `  leaf worker pool create orders --layout leaf
  leaf worker pool create orders --layout epoch=2026-01-01T00:00:00Z,tick=1ms,worker=10,sequence=12
  leaf worker pool create batch --layout leaf --max-ttl 1h`,
		Args: args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := parsePoolLayout(layout)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			return a.with(cmd, func() error {
				pool := &leafv1.Pool{Name: args[0], Layout: l, MaxTtl: durationOrNil(maxTTL), ClaimDelay: durationOrNil(claimDelay)}
				res, err := cli.Call(cmd.Context(), &a.Client, a.calls.CreatePool, &leafv1.CreatePoolRequest{Pool: pool})
				if err != nil {
					return err
				}
				return printList(cmd.OutOrStdout(), []poolRow{poolFromWire(res.GetPool())}, a.json, poolHeader, poolRow.cells)
			})
		},
	}
	a.addChangeFlags(cmd, workersFlag())
	cmd.Flags().StringVar(&layout, "layout", "", "the `LAYOUT` of the programs' IDs; needed")
	cmd.Flags().DurationVar(&maxTTL, "max-ttl", 0, "the longest lease, 1s to 24h (default 10m)")
	cmd.Flags().DurationVar(&claimDelay, "claim-delay", 0, "how long claims wait after the registry may have lost leases (default max-ttl and 5s)")
	return cmd
}

// durationOrNil returns d for a request; nil for 0, where the server decides.
func durationOrNil(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// parsePoolLayout reads the name of a built-in layout, or key=value pairs.
func parsePoolLayout(text string) (*leafv1.PoolLayout, error) {
	if p, ok := snowflake.Preset(text); ok {
		return &leafv1.PoolLayout{
			Epoch: timestamppb.New(p.Epoch), Tick: durationpb.New(p.Tick),
			TimeBits: int32(p.TimeBits), WorkerBits: int32(p.WorkerBits), SequenceBits: int32(p.SequenceBits),
		}, nil
	}
	l := &leafv1.PoolLayout{Tick: durationpb.New(time.Millisecond)}
	bits := map[string]*int32{"time": &l.TimeBits, "worker": &l.WorkerBits, "sequence": &l.SequenceBits}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(pair, "=")
		var err error
		switch field := bits[key]; {
		case field != nil:
			var n int64
			n, err = strconv.ParseInt(value, 10, 32)
			*field = int32(n)
		case key == "epoch":
			var t time.Time
			t, err = time.Parse(time.RFC3339, value)
			l.Epoch = timestamppb.New(t)
		case key == "tick":
			var d time.Duration
			d, err = time.ParseDuration(value)
			l.Tick = durationpb.New(d)
		default:
			err = fmt.Errorf("there are epoch, tick, time, worker and sequence")
		}
		if err != nil {
			return nil, fmt.Errorf("--layout %s: %q: give %s, or values such as epoch=2026-01-01T00:00:00Z,worker=10,sequence=12: %w",
				cli.Printable(text), pair, strings.Join(snowflake.PresetNames(), ", "), err)
		}
	}
	if l.Epoch == nil || l.WorkerBits == 0 || l.SequenceBits == 0 {
		return nil, fmt.Errorf("--layout %s: epoch, worker and sequence are needed", cli.Printable(text))
	}
	return l, nil
}

func newPoolList() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the pools of worker IDs",
		Example: `  leaf worker pool list`,
		Args:    args(),
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			res, err := cli.Call(cmd.Context(), &a.Client, a.calls.ListPools, &leafv1.ListPoolsRequest{})
			if err != nil {
				return err
			}
			return printList(cmd.OutOrStdout(), rowsOf(res.GetPools(), poolFromWire), a.json, poolHeader, poolRow.cells)
		}),
	}
	a.addFlags(cmd, workersFlag())
	return cmd
}

const poolHeader = "POOL\tEPOCH\tTICK\tTIME\tWORKER\tSEQUENCE\tMAX TTL\tCLAIM DELAY"

// A poolRow is a pool as people see it.
type poolRow struct {
	Name         string        `json:"name"`
	Epoch        time.Time     `json:"epoch"`
	Tick         time.Duration `json:"tick_ns"`
	TimeBits     int32         `json:"time_bits"`
	WorkerBits   int32         `json:"worker_bits"`
	SequenceBits int32         `json:"sequence_bits"`
	MaxTTL       time.Duration `json:"max_ttl_ns"`
	ClaimDelay   time.Duration `json:"claim_delay_ns"`
}

func (r poolRow) cells() []string {
	bits := func(n int32) string { return decimal(int64(n)) }
	return []string{r.Name, moment(r.Epoch), r.Tick.String(), bits(r.TimeBits), bits(r.WorkerBits), bits(r.SequenceBits), r.MaxTTL.String(), r.ClaimDelay.String()}
}

func poolFromWire(p *leafv1.Pool) poolRow {
	l := p.GetLayout()
	return poolRow{p.GetName(), l.GetEpoch().AsTime(), l.GetTick().AsDuration(), l.GetTimeBits(), l.GetWorkerBits(), l.GetSequenceBits(),
		p.GetMaxTtl().AsDuration(), p.GetClaimDelay().AsDuration()}
}
