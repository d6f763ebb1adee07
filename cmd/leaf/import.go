package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/foreign"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/textid"
)

// defaultMargin is more than most old servers hand out while they are replaced.
const defaultMargin = 1_000_000

type importFlags struct {
	admin
	from, tables []string
	fromFiles    []string
	margin       int64
	dryRun       bool
}

func newImport() *cobra.Command {
	f := new(importFlags)
	cmd := &cobra.Command{
		Use:   "import --from URL --store URL",
		Short: "Take over the counters of another ID generator",
		Long: `Take over the counters of another ID generator: each becomes a tag that starts --margin
above the highest ID which the old counter has handed out. It reads, in a MySQL database,
  leaf_alloc               Java Leaf
  tiny_id_info             TinyID
  cosid                    CosId
  Tickets64 and its like   ticket servers: tables with columns id and stub
  WORKER_NODE, cosid_machine    only to say which worker IDs are in use
and with --table any table with an AUTO_INCREMENT. In Redis it reads the keys of CosId,
and behind any URL the tags of another store of Leaf's own, with their options. Their
periods all continue --margin above the highest one.

The old system stays as it is: import does not stop it. While it runs it counts on, and
nothing but the margin keeps it from the IDs of the new tags. The pages
docs/migrating-from-*.md say how to set it a bound, and when to stop it.

It can be repeated. A tag is raised if the old counter with the margin is above it, and
never lowered. If several servers share a counter, as ticket servers and databases of
TinyID do, name each with --from: the highest counts.

The store is --store, or a running server's: --server.`,
		Example: `  leaf import --from mysql://reader:secret@old/tinyid --store mysql://root:secret@db/leaf --dry-run
  leaf import --from mysql://reader:secret@old/tinyid --store mysql://root:secret@db/leaf
  leaf import --from mysql://r:s@ticket1/t --from mysql://r:s@ticket2/t --store sqlite:ids.db
  leaf import --from mysql://r:s@old/shop --table orders --margin 100000 --server http://ids:8080`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(f.from)+len(f.fromFiles) == 0 {
				return cli.Usage(cmd, errors.New("--from is missing: say which databases have the counters"))
			}
			if f.margin < 0 {
				return cli.Usage(cmd, errors.New("--margin must not be negative: IDs would be issued twice"))
			}
			return f.with(cmd, func() error { return f.run(cmd) })
		},
	}
	f.addChangeFlags(cmd, storeFlag())
	cmd.Flags().StringArrayVar(&f.from, "from", nil, "`URL` of a database with counters; may be repeated")
	cmd.Flags().StringArrayVar(&f.fromFiles, "from-file", nil, "`FILE` that holds such a URL; may be repeated")
	cmd.Flags().StringArrayVar(&f.tables, "table", nil, "`NAME` of a table whose AUTO_INCREMENT to take over; may be repeated")
	cli.WholeVar(cmd, &f.margin, "margin", "", defaultMargin, "how many IDs to leave to the old counter")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show what would be done")
	return cmd
}

// An importRow is what becomes of one counter.
type importRow struct {
	System string `json:"system"`
	Table  string `json:"table"`
	Tag    string `json:"tag"`
	Next   int64  `json:"next,string"`                    // one past the highest handed out ID
	Before int64  `json:"max_id_before,omitempty,string"` // of the tag
	MaxID  int64  `json:"max_id,omitempty,string"`        // of the tag
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
}

// Results of an import.
const (
	importCreate = "create"
	importRaise  = "raise"
	importKeep   = "keep"
	importSkip   = "skip"
)

func (r importRow) cells() []string {
	next, maxID := decimal(r.Next), "-"
	if r.MaxID > 0 {
		maxID = decimal(r.MaxID)
	}
	result := r.Result
	if r.Reason != "" {
		result += ": " + r.Reason
	}
	return []string{r.System, r.Table, r.Tag, next, maxID, result}
}

func (f *importFlags) run(cmd *cobra.Command) error {
	found, err := f.read(cmd)
	if err != nil {
		return err
	}
	tags, err := f.listTags(cmd.Context())
	if err != nil {
		return err
	}
	before := make(map[string]tagRow)
	for _, tag := range tags {
		before[tag.Tag] = tag
	}
	rows := []importRow{}
	var failed []error
	for _, c := range found.Counters {
		existing, ok := before[c.Name]
		row := planImport(c, existing, ok, f.margin)
		if !f.dryRun {
			if err := f.apply(cmd, &row, c); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", cli.Printable(row.Tag), err))
				continue
			}
		}
		rows = append(rows, row)
	}
	cli.Say(cmd, "note", found.Notes...)
	if f.dryRun {
		cli.Say(cmd, "note", "nothing was changed (--dry-run)")
	}
	printed := printList(cmd.OutOrStdout(), rows, f.json, "SYSTEM\tTABLE\tTAG\tNEXT\tMAX_ID\tRESULT", importRow.cells)
	return errors.Join(append(failed, skipped(rows), printed)...)
}

func (f *importFlags) read(cmd *cobra.Command) (found foreign.Found, err error) {
	urls := slices.Clone(f.from)
	for _, file := range f.fromFiles {
		url, err := config.ReadURL(file)
		if err != nil {
			return found, fmt.Errorf("--from-file: %w", err)
		}
		urls = append(urls, url)
	}
	for _, url := range urls {
		more, err := f.readOne(cmd, url)
		if err != nil {
			return found, err
		}
		if f.isStore(url) {
			more.Counters = slices.DeleteFunc(more.Counters, foreign.Counter.Own)
		}
		found.Add(more)
	}
	found.Merge()
	if len(found.Counters)+len(found.Notes) == 0 {
		return found, cli.Hinted(errors.New("there is nothing to take over: no known table or key was found"),
			"known are %s, CosId's keys in Redis, and with --table any table with an AUTO_INCREMENT", foreign.Tables)
	}
	return found, nil
}

func (f *importFlags) readOne(cmd *cobra.Command, url string) (foreign.Found, error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), f.Timeout)
	defer cancel()
	start := time.Now()
	found, err := drivers.ReadForeign(ctx, url, f.tables)
	switch {
	case errors.Is(err, leaf.ErrInvalid):
		return found, cli.Usage(cmd, fmt.Errorf("--from: %w", err))
	case errors.Is(err, context.DeadlineExceeded):
		return found, noAnswer("the database", err, url, time.Since(start))
	case err != nil:
		return found, fmt.Errorf("--from: %w", err)
	}
	return found, nil
}

// isStore reports whether a URL is that of the store: its tags are not imported.
func (f *importFlags) isStore(from string) bool {
	if f.url == "" {
		return false
	}
	a, err := drivers.Open(from, nil)
	if err != nil {
		return false // the reading tells
	}
	defer a.Close()
	b, err := drivers.Open(f.url, nil)
	if err != nil {
		return false
	}
	defer b.Close()
	return a.Key == b.Key
}

func planImport(c foreign.Counter, existing tagRow, exists bool, margin int64) importRow {
	row := importRow{System: c.System, Table: c.Table, Tag: c.Name, Next: c.Next, Result: importSkip, Reason: c.Skip}
	if exists {
		row.Before, row.MaxID = existing.MaxID, existing.MaxID
	}
	if exists && row.Reason == "" && existing.Options[segment.OptionMask] != c.Options[segment.OptionMask] {
		row.Reason = "only one of the tags has this mask: a hidden number could be a number of the other"
	}
	options := c.Options
	if exists {
		options = existing.Options
	}
	if row.Reason == "" && (c.Next > math.MaxInt64-margin || fits(options, c.Next) && !fits(options, c.Next+margin)) {
		row.Reason = "the margin leaves it no IDs: choose a smaller one"
	}
	if err := segment.CheckTagName(c.Name); err != nil {
		row.Reason = cmp.Or(row.Reason, err.Error())
	}
	if row.Reason != "" {
		return row
	}
	start := c.Next + margin
	switch {
	case !exists:
		row.Result, row.MaxID = importCreate, start
	case existing.MaxID < start:
		row.Result, row.MaxID = importRaise, start
	default:
		row.Result = importKeep
	}
	return row
}

// fits reports whether n is a number of a tag with these options, as the mask or the form has it.
func fits(o segment.TagOptions, n int64) bool {
	if o.Masked() {
		return o.CheckCounter(n) == nil
	}
	form, err := textid.New(o[segment.OptionForm])
	if err != nil {
		return true // it has none
	}
	_, err = form.Encode(textid.Number{N: n})
	return !errors.Is(err, leaf.ErrOverflow)
}

// apply does what row says. Where a deleted tag of the name was higher, the new one starts there.
func (f *importFlags) apply(cmd *cobra.Command, row *importRow, c foreign.Counter) error {
	var tag tagRow
	var err error
	switch row.Result {
	case importCreate:
		created := segment.Tag{Name: row.Tag, MaxID: row.MaxID, Step: c.Step, Options: c.Options}
		if c.Step < 1 || c.Step > segment.MaxStep {
			created.Step = defaultStep
		}
		if !c.Own() {
			created.Options = segment.Describe("imported from " + row.Table)
		}
		tag, err = f.createTag(cmd.Context(), created)
	case importRaise:
		tag, err = f.alterTag(cmd.Context(), row.Tag, issuer.Change{Change: segment.Change{MaxID: &row.MaxID}})
		if errors.Is(err, leaf.ErrRegression) || connect.CodeOf(err) == connect.CodeFailedPrecondition {
			row.Result = importKeep // it has passed there meanwhile
			return nil
		}
	default:
		return nil
	}
	if err == nil {
		row.MaxID = tag.MaxID
	}
	return err
}

// skipped is an error if a counter was not taken over because of a fault.
func skipped(rows []importRow) error {
	var names []string
	for _, row := range rows {
		if row.Result == importSkip {
			names = append(names, cli.Printable(row.Tag))
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("%d of %d counters are not taken over: %s", len(names), len(rows), strings.Join(names, ", "))
}
