package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/segment"
)

// A tagRow is one tag as people see it. In JSON, IDs are strings, since many readers keep
// only 53 bits of a number.
type tagRow struct {
	Tag         string             `json:"tag"`
	MaxID       int64              `json:"max_id,string"`
	Step        int64              `json:"step"`
	Description string             `json:"description"`
	Options     segment.TagOptions `json:"options,omitempty"` // the others
	Updated     time.Time          `json:"updated,omitzero"`
}

func (t tagRow) cells() []string {
	return []string{t.Tag, decimal(t.Step), decimal(t.MaxID), moment(t.Updated), strings.Join(t.about(), ", ")}
}

// about returns the options as people read them, and the description at the end.
func (t tagRow) about() (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(t.Options)) {
		texts = append(texts, name+"="+t.Options[name])
	}
	if t.Description != "" {
		texts = append(texts, t.Description)
	}
	return texts
}

// rowsOf returns the rows of messages. It is never nil, which JSON would show as null.
func rowsOf[Message, Row any](messages []Message, row func(Message) Row) []Row {
	rows := make([]Row, 0, len(messages))
	for _, m := range messages {
		rows = append(rows, row(m))
	}
	return rows
}

func printList[T any](w io.Writer, rows []T, asJSON bool, header string, cells func(T) []string) error {
	if asJSON {
		return cli.PrintJSON(w, rows)
	}
	return printTable(w, rows, header, cells)
}

func printTable[T any](w io.Writer, rows []T, header string, cells func(T) []string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, header)
	for _, r := range rows {
		line := cells(r)
		for i, c := range line {
			line[i] = cli.Printable(c)
		}
		fmt.Fprintln(tw, strings.Join(line, "\t"))
	}
	return tw.Flush()
}

func (a *admin) printTag(cmd *cobra.Command, verb string, t tagRow, err error) error {
	if err != nil {
		return err
	}
	return cli.Print(cmd.OutOrStdout(), a.json, t, "%s %s: step %d, max_id %d\n", verb, cli.Printable(t.Tag), t.Step, t.MaxID)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// timeOf returns the time of a message, or the zero Time.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}
