package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/leafconn"
)

// takeAtOnce is the number of IDs in one call, at first: the default limit of a server.
const takeAtOnce = 10_000

type nextFlags struct {
	period string
	cli.Client
	n      int64
	scheme string
	json   bool
	form   bool
}

func newNext() *cobra.Command {
	var f nextFlags
	cmd := &cobra.Command{
		Use:   "next TAG | next [LAYOUT] --scheme snowflake | next [v4|v7] --scheme uuid",
		Short: "Print new IDs, one a line",
		Long: `Ask a server for IDs of a tag and print them, one a line. With --scheme snowflake
or uid the IDs are made of the time and belong to no tag; the name of a layout of the
server selects that, anything else, or nothing, the default one. With --scheme uuid they
are UUIDs, of version 7 unless v4 is asked for. The scheme ticket is for tags of ticket
servers.

An ID that was printed is never handed out again, to anyone. A large -n is fetched
and printed in parts: if it fails midway, the IDs printed so far are good.`,
		Example: `  leaf next order                  one ID
  leaf next order -n 100           a hundred
  leaf next order -n 3 -o json     as a JSON array of strings
  leaf next invoice --form         as a text, such as INV-0000424
  leaf next --scheme snowflake     one made of the time
  leaf next --scheme uuid          a UUID of version 7`,
		Args: f.args,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return completeTag(&f.Client, cmd, args, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.n < 1 {
				return cli.Usage(cmd, fmt.Errorf("-n %d: ask for at least one ID", f.n))
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), strings.Join(args, "")) // at most one
		},
	}
	f.AddFlags(cmd)
	cli.WholeVar(cmd, &f.n, "count", "n", 1, "how many IDs")
	cmd.Flags().StringVar(&f.scheme, "scheme", issuer.Segment, "what makes the IDs: "+strings.Join(issuer.SchemeNames(), ", "))
	cmd.Flags().StringVar(&f.period, "period", "", "first day of a period of the tag, such as 2026-11-23 (default: the present one)")
	cmd.Flags().BoolVar(&f.form, "form", false, "print the texts that the tag's form makes of the numbers")
	cli.OutputVar(cmd, &f.json)
	return cmd
}

func (f *nextFlags) tagged() bool { return issuer.SchemeOf(f.scheme).Tags }

// args checks the arguments: only a tag must be named.
func (f *nextFlags) args(cmd *cobra.Command, given []string) error {
	switch {
	case f.tagged():
		return tagArg(cmd, given)
	case len(given) == 0:
		return nil
	}
	return args("TAG")(cmd, given)
}

func (f *nextFlags) run(ctx context.Context, w io.Writer, tag string) error {
	ids, err := cli.Open(&f.Client, leafv1connect.NewLeafServiceClient)
	if err != nil {
		return err
	}
	out := newIDPrinter(w, f.json)
	for left, chunk := f.n, int64(takeAtOnce); left > 0; {
		n := min(left, chunk)
		res, err := f.take(ctx, ids, tag, n)
		if connect.CodeOf(err) == connect.CodeInvalidArgument && n > 1 {
			chunk = n / 2 // the server's limit is lower; a wrong tag fails at 1
			continue
		}
		if err != nil && f.tagged() {
			return explainTag(err, tag)
		}
		if err != nil {
			return err
		}
		if err := out.print(res); err != nil {
			return fmt.Errorf("print the IDs: %w", err)
		}
		left -= n
	}
	return out.close()
}

func (f *nextFlags) take(ctx context.Context, ids leafv1connect.LeafServiceClient, tag string, n int64) (*leafv1.TakeResponse, error) {
	req := &leafv1.TakeRequest{Scheme: f.scheme, Key: tag, Count: int32(n), Period: f.period, Form: f.form}
	res, err := cli.Call(ctx, &f.Client, ids.Take, req)
	if err == nil {
		err = leafconn.CheckTaken(req, res)
	}
	if err != nil {
		return nil, err
	}
	got := int64(len(res.GetTexts()))
	for _, r := range res.GetRanges() {
		got += r.GetEnd() - r.GetStart()
	}
	if got != n {
		return nil, fmt.Errorf("the server answered with %d IDs instead of %d", got, n)
	}
	return res, nil
}

// An idPrinter writes IDs as they come, as lines or as one JSON array. Flush tells of a
// failed write.
type idPrinter struct {
	w                           *bufio.Writer
	before, between, after, end string
	buf                         []byte
}

func newIDPrinter(w io.Writer, json bool) *idPrinter {
	p := &idPrinter{w: bufio.NewWriterSize(w, 1<<16), after: "\n"}
	if json {
		p.before, p.between, p.after, p.end = `["`, ",\n\"", `"`, "]\n"
	}
	return p
}

func (p *idPrinter) print(res *leafv1.TakeResponse) error {
	for _, r := range res.GetRanges() {
		for id := r.GetStart(); id < r.GetEnd(); id++ {
			p.buf = strconv.AppendInt(p.buf[:0], id, 10)
			p.line(p.buf)
		}
	}
	for _, text := range res.GetTexts() {
		p.line([]byte(text))
	}
	return p.w.Flush()
}

func (p *idPrinter) line(id []byte) {
	_, _ = p.w.WriteString(p.before)
	_, _ = p.w.Write(id)
	_, _ = p.w.WriteString(p.after)
	p.before = p.between
}

func (p *idPrinter) close() error {
	_, _ = p.w.WriteString(p.end)
	return p.w.Flush()
}
