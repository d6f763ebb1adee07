package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/leafconn"
)

// A peekedJSON is what `leaf tag peek -o json` prints.
type peekedJSON struct {
	Tag   string `json:"tag"`
	Next  int64  `json:"next,string"`
	Stock int64  `json:"stock"`
	MaxID int64  `json:"max_id,string"`
}

func newTagPeek() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use:   "peek TAG",
		Short: "Show which ID comes next, and take none",
		Long: `Show which ID the server would issue next if no other call came first, and take none.
Where the server holds nothing in memory, it is the tag's max_id in the store, which
another server may take first.`,
		Example:           "  leaf tag peek order",
		Args:              tagArg,
		ValidArgsFunction: a.completeTag,
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			res, err := cli.Call(cmd.Context(), &a.Client, a.calls.PeekTag, &leafv1.PeekTagRequest{Name: args[0]})
			if err != nil {
				return explainTag(err, args[0])
			}
			next, err := leafconn.PeekedNext(res)
			if err != nil {
				return err
			}
			p := peekedJSON{res.GetTag().GetName(), next, res.GetStock(), res.GetTag().GetMaxId()}
			return cli.Print(cmd.OutOrStdout(), a.json, p, "%s: next %d, %d in memory, max_id %d\n", cli.Printable(p.Tag), p.Next, p.Stock, p.MaxID)
		}),
	}
	a.addFlags(cmd, storeFlag())
	return cmd
}

// An observedJSON is what `leaf tag observe -o json` prints.
type observedJSON struct {
	Tag         string  `json:"tag"`
	MaxID       int64   `json:"max_id,string"`
	Dropped     int64   `json:"dropped"`
	OthersBelow int64   `json:"others_below,string,omitempty"`
	OthersFor   float64 `json:"others_for_s,omitempty"` // seconds
}

func newTagObserve() *cobra.Command {
	var a admin
	var largest int64
	cmd := &cobra.Command{
		Use:   "observe TAG --max N",
		Short: "Tell that IDs up to N are in use, and skip them",
		Long: `Tell that IDs up to N are in use that no server issued, because somebody inserted them
by hand: the tag's counter moves above N if it is not there yet, and never down. This
server drops what it holds below at once. It may be run again, which changes nothing.

Other servers, and programs that keep a stock, go on with what they held before. Run it
with --server on each server; a program issues from its stock until that is used up.`,
		Example:           "  leaf tag observe order --max 120000",
		Args:              tagArg,
		ValidArgsFunction: a.completeTag,
		RunE: func(cmd *cobra.Command, args []string) error {
			if largest < 0 || !cmd.Flags().Changed("max") {
				return cli.Usage(cmd, errors.New("say with --max N which is the largest ID in use, at least 0"))
			}
			return a.with(cmd, func() error { return a.observe(cmd, args[0], largest) })
		},
	}
	a.addChangeFlags(cmd, storeFlag())
	cli.WholeVar(cmd, &largest, "max", "", 0, "the largest ID in use (required)")
	return cmd
}

func (a *admin) observe(cmd *cobra.Command, tag string, largest int64) error {
	res, err := cli.Call(cmd.Context(), &a.Client, a.calls.ObserveTag, &leafv1.ObserveTagRequest{Name: tag, Max: largest})
	if err != nil {
		return explainTag(err, tag)
	}
	lasts := res.GetOthersFor().AsDuration()
	o := observedJSON{tag, res.GetTag().GetMaxId(), res.GetDropped(), res.GetOthersBelow(), lasts.Seconds()}
	if o.OthersBelow > 0 {
		note := fmt.Sprintf("other servers, and programs with a stock, may still issue IDs below %d that they held before", o.OthersBelow)
		if lasts > 0 {
			note += fmt.Sprintf(":\na busy server for about %v, an idle one until it stops or is told, too", lasts.Round(time.Second))
		}
		cli.Say(cmd, "note", note)
	}
	return cli.Print(cmd.OutOrStdout(), a.json, o, "observed %s: max_id %d, %d IDs dropped from memory\n", cli.Printable(o.Tag), o.MaxID, o.Dropped)
}
