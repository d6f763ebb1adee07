package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/mask"
	"github.com/leaf-id/leaf/textid"
)

// noteForm is what both commands say about templates.
const noteForm = `A form is a template of the text, for example 'INV-{period:yyyyMMdd}-{n:6}{check:luhn}'. The
fields are {n}, {n:WIDTH}, {n:BASE:WIDTH} with base10, base36, base58 or base32,
{period:yyyyMMdd}, {key} and {check:luhn|mod11-10|mod97-10}.`

func newEncode() *cobra.Command {
	var template, period string
	var m maskFlags
	var version int64
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "encode N --form TEMPLATE",
		Short: "Write a number in a form for people",
		Long: `Write a number as a text for people. 'leaf decode' reads it back. Neither needs a server.

` + noteForm + `

With --mask it hides the number first: it writes the one that stands for it under the key.`,
		Example: `  leaf encode 42 --form 'INV-{n:6}{check:luhn}'
  leaf encode 42 --form 'INV-{period:yyyyMMdd}-{n:6}' --period 2026-11-23
  leaf encode 9007199254740991 --form '{n:base32:13}'
  leaf encode 42 --mask '10^9' --mask-key order.key --series order --form 'C{n:9}'`,
		Args: args("N"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v := textid.Number{Key: int(version)}
			var err error
			if v.N, err = parseID(args[0]); err == nil && period != "" {
				v.Period, err = parseDay(period)
			}
			if err != nil {
				return cli.Usage(cmd, err)
			}
			f, err := textid.New(template)
			if err != nil {
				return cli.Usage(cmd, err)
			}
			hide, _, err := m.open(cmd)
			if err != nil {
				return err
			}
			hidden := v
			if hidden.N, err = hide(v.N); err != nil {
				return err
			}
			text, err := f.Encode(hidden)
			if err != nil {
				return err
			}
			return printNumber(cmd.OutOrStdout(), text, v, text+"\n", asJSON)
		},
	}
	m.addFlags(cmd)
	cmd.Flags().StringVar(&template, "form", "{n}", "`TEMPLATE` of the text")
	cmd.Flags().StringVar(&period, "period", "", "first `DAY` of the number's period, as 2026-11-23")
	cli.WholeVar(cmd, &version, "key-version", "", 0, "version of the key of a mask, 0 … 9")
	cli.OutputVar(cmd, &asJSON)
	return cmd
}

type maskFlags struct{ domain, keyFile, series string }

func (m *maskFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.domain, "mask", "", "`DOMAIN` of a mask: 53, 63 or 10^6 … 10^18")
	cmd.Flags().StringVar(&m.keyFile, "mask-key", "", "`FILE` with the 64 hexadecimal digits of the mask's key")
	cmd.Flags().StringVar(&m.series, "series", "", "`NAME` of the masked series: the tag")
}

// open returns both directions of the mask; without --mask they change nothing.
func (m *maskFlags) open(cmd *cobra.Command) (hide, reveal func(int64) (int64, error), err error) {
	if m.domain == "" {
		same := func(n int64) (int64, error) { return n, nil }
		return same, same, nil
	}
	d, err := mask.ParseDomain(m.domain)
	if err != nil {
		return nil, nil, cli.Usage(cmd, err)
	}
	if m.keyFile == "" || m.series == "" {
		return nil, nil, cli.Usage(cmd, errors.New("--mask goes with --mask-key FILE and --series TAG"))
	}
	text, err := os.ReadFile(m.keyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("read the key: %w", err)
	}
	key, err := mask.ParseKey(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cli.Printable(m.keyFile), err)
	}
	of, err := mask.New(key, d, m.series)
	if err != nil {
		return nil, nil, err
	}
	return of.Hide, of.Reveal, nil
}

func decodeText(cmd *cobra.Command, template, text string, m maskFlags, asJSON bool) error {
	_, reveal, err := m.open(cmd)
	if err != nil {
		return err
	}
	f, err := textid.New(template)
	if err != nil {
		return cli.Usage(cmd, err)
	}
	v, err := f.Decode(text)
	if err != nil {
		return err
	}
	if v.N, err = reveal(v.N); err != nil {
		return err
	}
	lines := fmt.Sprintf("number    %d\n", v.N)
	if f.HasPeriod() {
		lines += fmt.Sprintf("period    %s\n", v.Period.Format(time.DateOnly))
	}
	if f.HasKey() {
		lines += fmt.Sprintf("key       %d\n", v.Key)
	}
	return printNumber(cmd.OutOrStdout(), text, v, lines, asJSON)
}

// A numberJSON is a number as both commands print it with -o json.
type numberJSON struct {
	Text   string `json:"text"`
	Number int64  `json:"number,string"`
	Period string `json:"period,omitempty"`
	Key    int    `json:"key_version,omitempty"`
}

func printNumber(w io.Writer, text string, v textid.Number, lines string, asJSON bool) error {
	j := numberJSON{Text: text, Number: v.N, Key: v.Key}
	if !v.Period.IsZero() {
		j.Period = v.Period.Format(time.DateOnly)
	}
	return cli.Print(w, asJSON, j, "%s", lines)
}

func parseDay(text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, fmt.Errorf("%s is not a day: write it as 2026-11-23", cli.Printable(text))
	}
	return day, nil
}
