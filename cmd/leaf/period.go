package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/cli"
)

// A periodRow is a period as the command prints it.
type periodRow struct {
	Period string `json:"period"`
	MaxID  int64  `json:"max_id,string"`
}

func (p periodRow) cells() []string { return []string{p.Period, decimal(p.MaxID)} }

func newTagPeriods() *cobra.Command {
	var a admin
	var remove string
	var yes bool
	cmd := &cobra.Command{
		Use:   "periods TAG",
		Short: "List or remove the periods of a tag",
		Long: `List the periods of a tag whose numbers start again with each one. A period is named
by its first day; max_id is one past its highest number.

--remove removes a period that has been over for an hour. The store keeps its counter:
numbers never come back, and calls that name the period fail from then on. It asks
before it does so; where there is no terminal it needs --yes.`,
		Example: `  leaf tag create invoice --period day --zone Europe/Berlin
  leaf tag periods invoice
  leaf tag periods invoice --remove 2025-11-23 --yes`,
		Args:              tagArg,
		ValidArgsFunction: a.completeTag,
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("remove") {
				if err := confirm(cmd, yes, "remove the period "+cli.Printable(remove)+" of "+cli.Printable(args[0])); err != nil {
					return err
				}
				_, err := cli.Call(cmd.Context(), &a.Client, a.calls.RemovePeriod, &leafv1.RemovePeriodRequest{Name: args[0], Period: remove})
				if err != nil {
					return explainTag(err, args[0])
				}
			}
			rows, err := a.listPeriods(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return printList(cmd.OutOrStdout(), rows, a.json, "PERIOD\tMAX_ID", periodRow.cells)
		}),
	}
	a.addChangeFlags(cmd, storeFlag())
	cmd.Flags().StringVar(&remove, "remove", "", "first day of the period to remove, such as "+time.DateOnly)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func (a *admin) listPeriods(ctx context.Context, tag string) ([]periodRow, error) {
	res, err := cli.Call(ctx, &a.Client, a.calls.ListPeriods, &leafv1.ListPeriodsRequest{Name: tag})
	return rowsOf(res.GetPeriods(), func(p *leafv1.Period) periodRow { return periodRow{p.GetName(), p.GetMaxId()} }), explainTag(err, tag)
}
