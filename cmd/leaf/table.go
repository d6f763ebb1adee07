package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/segment"
)

// A tagJSON is one tag as -o json prints it. IDs are strings, since
// many readers of JSON keep only 53 bits of a number.
type tagJSON struct {
	Tag         string    `json:"tag"`
	MaxID       int64     `json:"max_id,string"`
	Step        int64     `json:"step"`
	Description string    `json:"description"`
	Updated     time.Time `json:"updated,omitzero"`
}

func printTags(w io.Writer, tags []segment.Tag, asJSON bool) error {
	if asJSON {
		list := make([]tagJSON, len(tags))
		for i, t := range tags {
			list[i] = toJSON(t)
		}
		return printJSON(w, list)
	}
	return printTable(w, "TAG\tSTEP\tMAX_ID\tUPDATED\tDESCRIPTION", func(row func(...string)) {
		for _, t := range tags {
			row(t.Name, decimal(t.Step), decimal(t.MaxID), moment(t.Updated), t.Description)
		}
	})
}

func toJSON(t segment.Tag) tagJSON {
	return tagJSON{t.Name, t.MaxID, t.Step, t.Description, t.Updated}
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printTable writes aligned columns; fill calls row once a line.
func printTable(w io.Writer, header string, fill func(row func(cells ...string))) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, header)
	fill(func(cells ...string) {
		for i, c := range cells {
			cells[i] = printable(c)
		}
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	})
	return tw.Flush()
}

// printTag tells what became of a tag.
func (a *admin) printTag(cmd *cobra.Command, verb string, t segment.Tag) error {
	if a.json {
		return printJSON(cmd.OutOrStdout(), toJSON(t))
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s: step %d, max_id %d\n", verb, printable(t.Name), t.Step, t.MaxID)
	return err
}

// printable quotes text that would upset a terminal or the columns of a table: rows
// may come from anywhere. Spaces around it show.
func printable(text string) string {
	if !utf8.ValidString(text) || text != strings.TrimSpace(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}
