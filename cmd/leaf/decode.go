package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

type decodeFlags struct {
	cli.Client
	layout string
	form   string
	mask   maskFlags
	json   bool
}

func newDecode() *cobra.Command {
	var f decodeFlags
	cmd := &cobra.Command{
		Use:   "decode ID",
		Short: "Say when and where a time-based ID was made, or read a form",
		Long: `Take an ID of the scheme snowflake or uid apart: the time, the worker ID and the sequence
number in it. Nothing in an ID says which layout it was made in: name it.

The built-in layouts need no server: leaf, js53, uid, and uid-baidu, that of IDs made by
uid-generator with its own defaults, also the negative ones that it has issued since
2024: write -- before those. A layout of another name is one of the server's.

With --form it reads the number in a text that 'leaf encode' wrote, or a server, and needs no
server. It refuses a text with a wrong check digit. With --mask it reveals the number.

` + noteForm,
		Example: `  leaf decode 2124187246151073968
  leaf decode 7250361098241 --layout js53
  leaf decode 1424155419563001856 --layout uid
  leaf decode --layout uid-baidu -- -7053501026443165696
  leaf decode 7250361098241 --layout shop --server http://10.0.0.7:8080
  leaf decode INV-0000422 --form 'INV-{n:6}{check:luhn}'`,
		Args: args("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.form != "" || f.mask.domain != "" {
				return decodeText(cmd, cmp.Or(f.form, "{n}"), args[0], f.mask, f.json)
			}
			id, err := parseID(args[0])
			if err != nil && (id >= 0 || f.layout != "uid-baidu") {
				return cli.Usage(cmd, err)
			}
			d, err := f.decode(cmd.Context(), id)
			if errors.Is(err, leaf.ErrInvalid) { // a server did not say this
				return cli.Usage(cmd, err)
			}
			if err != nil {
				return err
			}
			return printDecoded(cmd.OutOrStdout(), id, d, f.json)
		},
	}
	f.AddFlags(cmd)
	cmd.Flags().StringVar(&f.layout, "layout", issuer.DefaultLayout, "`NAME` of the layout")
	cmd.Flags().StringVar(&f.form, "form", "", "`TEMPLATE` of a text, in place of a layout")
	f.mask.addFlags(cmd)
	cli.OutputVar(cmd, &f.json)
	return cmd
}

// parseID returns the whole number in text. A negative one comes with an error.
func parseID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		id = 0
	}
	if err != nil || id < 0 {
		err = fmt.Errorf("%s is not an ID: write a whole number from 0 to %d", cli.Printable(text), int64(1<<63-1))
	}
	return id, err
}

func (f *decodeFlags) decode(ctx context.Context, id int64) (issuer.Decoded, error) {
	if _, ok := snowflake.Preset(f.layout); ok {
		return issuer.Layouts(nil).Decode(f.layout, id)
	}
	ids, err := cli.Open(&f.Client, leafv1connect.NewLeafServiceClient)
	if err != nil {
		return issuer.Decoded{}, err
	}
	res, err := cli.Call(ctx, &f.Client, ids.Decode, &leafv1.DecodeRequest{Id: id, Layout: f.layout})
	if err != nil && connect.CodeOf(err) == connect.CodeUnknown { // no server has answered
		err = fmt.Errorf("layout %s is not built in: %w", cli.Printable(f.layout), err)
	}
	if err != nil {
		return issuer.Decoded{}, err
	}
	return issuer.Decoded{Layout: res.GetLayout(), Parts: snowflake.Parts{
		Time: res.GetTime().AsTime(), Tick: res.GetTick(), Worker: res.GetWorker(), Sequence: res.GetSequence(),
	}}, nil
}

// A decodedJSON is an ID as `leaf decode -o json` prints it.
type decodedJSON struct {
	ID       int64     `json:"id,string"`
	Layout   string    `json:"layout"`
	Time     time.Time `json:"time"`
	Tick     int64     `json:"tick,string"`
	Worker   int64     `json:"worker,string"`
	Sequence int64     `json:"sequence,string"`
}

// Forms of times, with the precision that IDs have.
const (
	millisLocal = "2006-01-02 15:04:05.000 -07:00"
	millisUTC   = "2006-01-02T15:04:05.000Z"
)

func printDecoded(w io.Writer, id int64, d issuer.Decoded, asJSON bool) error {
	return cli.Print(w, asJSON, decodedJSON{id, d.Layout, d.Time.UTC(), d.Tick, d.Worker, d.Sequence},
		"time      %s\nUTC       %s\nworker    %d\nsequence  %d\nlayout    %s\n",
		d.Time.Local().Format(millisLocal), d.Time.UTC().Format(millisUTC), d.Worker, d.Sequence, cli.Printable(d.Layout))
}
