package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
)

func newStatus() *cobra.Command {
	var c cli.Client
	var asJSON, alive bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a server is doing",
		Long: `Show what a server serves, from which store, what is wrong and what to do about it, the
lease of its worker ID, and what it holds of each tag in use:

  STOCK   IDs in memory             LASTS     how long they last at that rate
  ISSUED  since the server started  REFILLS   allocations from the store
  STEP    size of the next one      FAILURES  allocations that failed
  RATE    IDs a second, lately      LIFTED    times the counter was found moved back`,
		Example: `  leaf status
  leaf status --server http://10.0.0.7:8080 -o json`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if alive {
				_, err := cli.Call(cmd.Context(), &c, c.Alive, nil)
				return err
			}
			admin, err := cli.Open(&c, leafv1connect.NewAdminServiceClient)
			if err != nil {
				return err
			}
			res, err := cli.Call(cmd.Context(), &c, admin.Status, &leafv1.StatusRequest{})
			if err != nil {
				return err
			}
			if asJSON {
				return printProto(cmd.OutOrStdout(), res)
			}
			return printStatus(cmd.OutOrStdout(), res, time.Now())
		},
	}
	c.AddFlags(cmd)
	cli.OutputVar(cmd, &asJSON)
	cmd.Flags().BoolVar(&alive, "alive", false, "print nothing and succeed if the server lives, for a container's health check; needs no token")
	return cmd
}

func printProto(w io.Writer, res *leafv1.StatusResponse) error {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(res)
	if err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return cli.PrintJSON(w, json.RawMessage(text)) // which indents it: protojson's own spacing varies on purpose
}

func printStatus(w io.Writer, s *leafv1.StatusResponse, now time.Time) error {
	up := now.Sub(s.GetStarted().AsTime()).Round(time.Second)
	fmt.Fprintf(w, "server   leaf %s, listening on %s, up %s\n", cli.Printable(s.GetVersion()), s.GetListen(), up)
	for _, p := range s.GetPorts() {
		fmt.Fprintf(w, "%-8s %s on %s\n", cli.Printable(p.GetName()), cli.Printable(p.GetTitle()), p.GetAddress())
	}
	for _, c := range s.GetConditions() {
		printCondition(w, c)
	}
	for _, scheme := range s.GetSchemes() {
		fmt.Fprintf(w, "scheme   %s, %s\n", scheme.GetName(), schemeState(scheme))
	}
	if s.GetLease() != nil {
		printLease(w, s.GetLease())
	}
	if s.GetStore() == nil {
		return nil
	}
	store := s.GetStore()
	if _, err := fmt.Fprintf(w, "store    %s, %s\n", cli.Printable(store.GetName()), cli.Choose(store.GetReachable(), "reachable", "unavailable")); err != nil {
		return err
	}
	if store.GetIdentity() != "" {
		fmt.Fprintf(w, "identity %s\n", cli.Printable(store.GetIdentity()))
	}
	if store.GetLastError() != "" {
		fmt.Fprintf(w, "trouble  %s\n", cli.Printable(store.GetLastError()))
	}
	return printStats(w, slices.DeleteFunc(s.GetTags(), idle))
}

func printCondition(w io.Writer, c *leafv1.Condition) {
	fmt.Fprintf(w, "%-8s %s, %s: %s\n", cli.Choose(c.GetDown(), "down", "degraded"), c.GetName(),
		strings.Join(c.GetSchemes(), ", "), cli.Printable(c.GetText()))
	if c.GetAdvice() != "" {
		fmt.Fprintf(w, "do       %s\n", cli.Printable(c.GetAdvice()))
	}
}

func schemeState(s *leafv1.SchemeStatus) string {
	switch {
	case s.GetOff() != "":
		return "off: " + cli.Printable(s.GetOff())
	case s.GetReady():
		return "ready"
	case s.GetError() != "":
		return "not ready: " + cli.Printable(s.GetError())
	}
	return "not ready"
}

// printLease prints the state of the worker ID. The scheme has the problem of a missing lease.
func printLease(w io.Writer, l *leafv1.Lease) {
	if !l.GetHeld() {
		fmt.Fprintf(w, "worker   none, from %s\n", cli.Printable(l.GetRegistry()))
	} else {
		fmt.Fprintf(w, "worker   %d, term %d, from %s, reserved until %s, last confirmed %s\n", l.GetWorker(), l.GetTerm(),
			cli.Printable(l.GetRegistry()), moment(l.GetHorizon().AsTime()), moment(l.GetExtended().AsTime()))
		if l.GetError() != "" {
			fmt.Fprintf(w, "trouble  %s\n", cli.Printable(l.GetError()))
		}
	}
	if step := l.GetClockStep().AsDuration(); step.Abs() >= time.Second {
		fmt.Fprintf(w, "clock    this machine's clock has moved by %s, which IDs do not follow\n", step)
	}
	if l.GetPutBacks() > 0 || l.GetLost() > 0 {
		fmt.Fprintf(w, "worker   put back %d times after the registry had lost writes, lost to others %d times\n", l.GetPutBacks(), l.GetLost())
	}
	if l.StartsLeft != nil {
		fmt.Fprintf(w, "starts   %d left, each of which uses up a worker ID\n", l.GetStartsLeft())
	}
	for _, layout := range l.GetLayouts() {
		fmt.Fprintf(w, "layout   %s, until %s\n", cli.Printable(layout.GetName()), layout.GetLast().AsTime().UTC().Format(time.DateOnly))
	}
}

// idle reports a tag without anything to say, such as one that does not exist.
func idle(t *leafv1.TagStats) bool { return !t.GetLoaded() && t.GetError() == "" }

func printStats(w io.Writer, tags []*leafv1.TagStats) error {
	if len(tags) == 0 {
		_, err := fmt.Fprintln(w, "\nno tag is in use")
		return err
	}
	fmt.Fprintln(w)
	return printTable(w, tags, "TAG\tSTOCK\tISSUED\tSTEP\tRATE\tLASTS\tREFILLS\tFAILURES\tLIFTED\tTROUBLE", func(t *leafv1.TagStats) []string {
		return []string{t.GetTag(), decimal(t.GetStock()), decimal(t.GetIssued()), decimal(t.GetStep()),
			fmt.Sprintf("%.1f/s", t.GetRate()), lasts(t), decimal(t.GetRefills()), decimal(t.GetFailures()),
			decimal(t.GetRegressions()), strings.TrimSpace(t.GetError())}
	})
}

func lasts(t *leafv1.TagStats) string {
	if t.GetLasts() == nil || t.GetRate() == 0 {
		return "-"
	}
	return t.GetLasts().AsDuration().Round(time.Second).String()
}
