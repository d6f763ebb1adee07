package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// What lowering or deleting a tag means to the servers that used it.
const (
	noteLower = `IDs between the new max_id and the old one may be issued a second time.
The server that carries this out forgets how far the tag was. Every other server
that has served it remembers, takes a lower counter for a store that lost writes, and
lifts it again. To keep it low, stop those first and remove the files counters-* from
their data directories.`
	noteDelete = `the store keeps the counter: a tag of this name that is created again starts
where this one ended, because other servers may still issue IDs of it for a minute.
A server of an older release that creates the tag again starts it at 1.`
	noteStore = `With --store no server carries this out: all that have served the tag remember it.`
)

// defaultStep suits a quiet tag, of which a crash wastes that much; a busy one outgrows it by
// itself.
const defaultStep = 1000

func newTag() *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "tag",
		Short: "List, create, change and delete tags",
		Long: `List, create, change and delete tags.

A tag is a named counter in the store. Its max_id is the next number to be taken
into a server's memory, its step the least number of IDs that a server takes at
once; the description is for people.

` + fmt.Sprintf(noteTarget, "store", "store", "LEAF_STORE"),
	})
	cmd.AddCommand(newTagList(), newTagCreate(), newTagSet(), newTagRaise(), newTagPeek(), newTagObserve(), newTagPeriods(), newTagDelete())
	return cmd
}

func newTagList() *cobra.Command {
	var a admin
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all tags of the store",
		Long:  "List all tags of the store, sorted by name. max_id is one past the highest ID\nthat any server has taken into its memory.",
		Example: `  leaf tag list
  leaf tag list -o json
  leaf tag list --store mysql://root:secret@db/leaf`,
		Args: args(),
		RunE: a.runs(func(cmd *cobra.Command, _ []string) error {
			tags, err := a.listTags(cmd.Context())
			if err != nil {
				return err
			}
			return printList(cmd.OutOrStdout(), tags, a.json, "TAG\tSTEP\tMAX_ID\tUPDATED\tDESCRIPTION", tagRow.cells)
		}),
	}
	a.addFlags(cmd, storeFlag())
	return cmd
}

func newTagCreate() *cobra.Command {
	var a admin
	var force, yes bool
	tag := segment.Tag{}
	options := make(optionFlags)
	cmd := &cobra.Command{
		Use:   "create TAG",
		Short: "Create a tag",
		Long: `Create a tag. It can be used at once, on every server.

--step is the least number of IDs that a server takes from the store at once. Servers
take more by themselves when the demand is high.

Where a tag of this name was deleted, the new one starts where that ended, or at --start
if that is higher. A lower start needs --force: then it asks before it lowers the
counter; where there is no terminal it needs --yes. Mind: ` + noteLower + `

--max-id is another name of --start.`,
		Example: `  leaf tag create order
  leaf tag create invoice --step 100 --start 500000 --description "invoice numbers"
  leaf tag create receipt --period day --zone Europe/Berlin
  leaf tag create ticket --form 'T-{n:8}{check:luhn}'`,
		Args: args("TAG"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tag.Name, tag.Options = args[0], options.given(cmd).With(nil)
			start := cmp.Or(given(cmd, "start", &tag.MaxID), given(cmd, "max-id", &tag.MaxID))
			if err := tag.Check(); err != nil {
				return cli.Usage(cmd, err)
			}
			if force && start == nil {
				return cli.Usage(cmd, errors.New("--force goes with --start"))
			}
			return a.with(cmd, func() error {
				created, err := a.createTag(cmd.Context(), tag)
				if err == nil && created.MaxID > tag.MaxID {
					created, err = a.startHigher(cmd, created, start, force, yes)
				}
				return a.printTag(cmd, "created", created, err)
			})
		},
	}
	a.addChangeFlags(cmd, storeFlag())
	cli.WholeVar(cmd, &tag.Step, "step", "", defaultStep, "least number of IDs to take from the store at once")
	cli.WholeVar(cmd, &tag.MaxID, "start", "", 1, "the first ID")
	cli.WholeVar(cmd, &tag.MaxID, "max-id", "", 1, "the first ID")
	_ = cmd.Flags().MarkHidden("max-id") // it exists
	cmd.Flags().BoolVar(&force, "force", false, "allow --start below the IDs of a deleted tag")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	options.add(cmd, false)
	return cmd
}

type optionFlags map[string]*string

// add adds those of a new tag, or those that can change.
func (f optionFlags) add(cmd *cobra.Command, change bool) {
	for _, o := range segment.KnownOptions() {
		if !change || !o.Fixed {
			f[o.Name] = cmd.Flags().String(o.Name, "", o.Usage)
		}
	}
}

func (f optionFlags) given(cmd *cobra.Command) segment.TagOptions {
	options := make(segment.TagOptions)
	for name, value := range f {
		if cmd.Flags().Changed(name) {
			options[name] = *value
		}
	}
	return options
}

// startHigher says that a new tag starts where a deleted one ended, or by force lowers it to start.
func (a *admin) startHigher(cmd *cobra.Command, created tagRow, start *int64, force, yes bool) (tagRow, error) {
	cli.Say(cmd, "note", fmt.Sprintf("%s starts at %d, where a deleted tag of this name ended", cli.Printable(created.Tag), created.MaxID))
	if !force {
		if start != nil {
			cli.Say(cmd, "hint", "a lower start may issue IDs twice: 'leaf tag set' with --max-id and --force lowers the counter")
		}
		return created, nil
	}
	a.warn(cmd, noteLower)
	if err := confirm(cmd, yes, fmt.Sprintf("set max_id of %s to %d", cli.Printable(created.Tag), *start)); err != nil {
		return created, err
	}
	return a.alterTag(cmd.Context(), created.Tag, issuer.Change{Change: segment.Change{MaxID: start, Force: true}})
}

func newTagSet() *cobra.Command {
	var a admin
	var step, maxID int64
	options := make(optionFlags)
	var force, yes bool
	cmd := &cobra.Command{
		Use:   "set TAG",
		Short: "Change step, counter or options of a tag",
		Long: `Change the step, the counter or the options of a tag; what is not named stays. An empty
value removes an option, such as the description.

Servers take a new step up when they next take IDs from the store. A higher --max-id
skips the IDs below it, once the servers have used up what they hold in memory. A
lower one is refused unless --force is given. With --force it asks before it sets the
counter; where there is no terminal it needs --yes.

Mind: ` + noteLower,
		Example: `  leaf tag set order --step 5000
  leaf tag set order --max-id 1000000`,
		Args:              tagArg,
		ValidArgsFunction: a.completeTag,
		RunE: func(cmd *cobra.Command, args []string) error {
			change := issuer.Change{Change: segment.Change{Force: force}}
			change.Step = given(cmd, "step", &step)
			change.MaxID = given(cmd, "max-id", &maxID)
			change.Options = options.given(cmd)
			if err := change.Check(); err != nil {
				return cli.Usage(cmd, err)
			}
			return a.with(cmd, func() error {
				if force && change.MaxID != nil {
					a.warn(cmd, noteLower)
					if err := confirm(cmd, yes, fmt.Sprintf("set max_id of %s to %d", cli.Printable(args[0]), maxID)); err != nil {
						return err
					}
				}
				tag, err := a.alterTag(cmd.Context(), args[0], change)
				return a.printTag(cmd, "changed", tag, err)
			})
		},
	}
	a.addChangeFlags(cmd, storeFlag())
	cli.WholeVar(cmd, &step, "step", "", 0, "least number of IDs to take from the store at once")
	cli.WholeVar(cmd, &maxID, "max-id", "", 0, "the next ID to take from the store")
	cmd.Flags().BoolVar(&force, "force", false, "allow --max-id to lower the counter")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	options.add(cmd, true)
	return cmd
}

func newTagRaise() *cobra.Command {
	var a admin
	var by int64
	var all, dryRun bool
	cmd := &cobra.Command{
		Use:   "raise TAG|--all --by N",
		Short: "Skip IDs of one tag or of all",
		Long: `Skip IDs: lift the counter by N from wherever it stands. This is always safe, and so
is doing it again. All periods of a tag continue N above the highest of them.

It is what to do after the store was restored from a backup, with every server
stopped, before the first one is started: raise all tags by more than their counters
can have moved since. Choose a large N: 1000000000000 (10^12) is a ten-millionth of the
IDs that a tag has.

Tags that were created after the backup are missing in it. Create them again, with a
--max-id above their old IDs: 'leaf tag create TAG --max-id M'.`,
		Example: `  leaf tag raise order --by 100000
  leaf tag raise --all --by 1000000000000 --store mysql://root:secret@db/leaf --dry-run
  leaf tag raise --all --by 1000000000000 --store mysql://root:secret@db/leaf`,
		ValidArgsFunction: a.completeTag,
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := checkRaise(cmd, names, all, by); err != nil {
				return err
			}
			if dryRun && !all {
				return cli.Usage(cmd, errors.New("--dry-run goes with --all"))
			}
			return a.with(cmd, func() error {
				if all {
					return a.raiseAll(cmd, by, dryRun)
				}
				tag, err := a.alterTag(cmd.Context(), names[0], issuer.Change{RaiseBy: &by})
				return a.printTag(cmd, "raised", tag, err)
			})
		},
	}
	a.addChangeFlags(cmd, storeFlag())
	cli.WholeVar(cmd, &by, "by", "", 0, "how many IDs to skip (required)")
	cmd.Flags().BoolVar(&all, "all", false, "every tag of the store")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with --all: only show what would be done")
	return cmd
}

func checkRaise(cmd *cobra.Command, names []string, all bool, by int64) error {
	switch {
	case all && len(names) > 0:
		return cli.Usage(cmd, errors.New("give either a TAG or --all"))
	case by < 1:
		return cli.Usage(cmd, errors.New("say with --by N how many IDs to skip, at least 1"))
	case all:
		return nil
	}
	if len(names) == 0 {
		return cli.Usage(cmd, errors.New("TAG, or --all, is missing"))
	}
	return tagArg(cmd, names)
}

// A raisedJSON is one tag as `leaf tag raise --all -o json` prints it.
type raisedJSON struct {
	Tag  string `json:"tag"`
	From int64  `json:"max_id_before,string"`
	To   int64  `json:"max_id,string"`
}

// raiseAll continues after a failure: after a restore, every raised tag is safe.
func (a *admin) raiseAll(cmd *cobra.Command, by int64, dryRun bool) error {
	tags, err := a.listTags(cmd.Context())
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		cli.Say(cmd, "note", "the store has no tags")
	}
	raises, failed := a.raises(cmd.Context(), tags)
	if err := checkRoom(raises, by); err != nil {
		return err
	}
	raised := []raisedJSON{}
	for _, tag := range raises {
		to := tag.highest + by
		if !dryRun {
			if to, err = a.raiseFrom(cmd.Context(), tag, by); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", cli.Printable(tag.Tag), err))
				continue
			}
		}
		raised = append(raised, raisedJSON{tag.Tag, tag.MaxID, to})
		if a.json {
			continue
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s: max_id %d → %d\n", cli.Choose(dryRun, "would raise", "raised"), cli.Printable(tag.Tag),
			tag.MaxID, to); err != nil {
			return err
		}
	}
	if a.json {
		if err := cli.PrintJSON(cmd.OutOrStdout(), raised); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return cli.Hinted(fmt.Errorf("%d of %d tags were not raised:\n%w", len(failed), len(tags), errors.Join(failed...)),
			"run it again when the cause is gone: it raises the others once more, which is safe")
	}
	return nil
}

// A raise is a tag with the highest of its own counter and those of its periods.
type raise struct {
	tagRow
	highest int64
}

// raises returns the tags with their highest counters, and why those of others are unknown.
func (a *admin) raises(ctx context.Context, tags []tagRow) (all []raise, failed []error) {
	for _, tag := range tags {
		highest := tag.MaxID
		if tag.Options.Periodic() {
			periods, err := a.listPeriods(ctx, tag.Tag)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", cli.Printable(tag.Tag), err))
				continue
			}
			for _, p := range periods {
				highest = max(highest, p.MaxID)
			}
		}
		all = append(all, raise{tag, highest})
	}
	return all, failed
}

// checkRoom reports, before any tag is raised, those that cannot be raised so far.
func checkRoom(tags []raise, by int64) error {
	var full []string
	for _, tag := range tags {
		if tag.highest > math.MaxInt64-by {
			full = append(full, fmt.Sprintf("%s: max_id %d", cli.Printable(tag.Tag), tag.highest))
		}
	}
	if len(full) == 0 {
		return nil
	}
	return cli.Hinted(fmt.Errorf("nothing was raised: the largest ID is %d, and %d of %d tags would pass it:\n%s",
		int64(math.MaxInt64), len(full), len(tags), strings.Join(full, "\n")),
		"choose a smaller N, or raise the others one by one with 'leaf tag raise TAG --by N'")
}

// raiseFrom raises a tag by this number from its highest listed counter, and returns the new max_id.
// It names the new value, so that a counter shared by several tags, as on ticket servers, rises
// once. If servers have moved the counter beyond it meanwhile, raiseFrom raises it from its present
// value.
func (a *admin) raiseFrom(ctx context.Context, tag raise, by int64) (int64, error) {
	to := tag.highest + by
	raised, err := a.alterTag(ctx, tag.Tag, issuer.Change{Change: segment.Change{MaxID: &to}})
	if errors.Is(err, leaf.ErrRegression) || connect.CodeOf(err) == connect.CodeFailedPrecondition {
		raised, err = a.alterTag(ctx, tag.Tag, issuer.Change{RaiseBy: &by})
	}
	return raised.MaxID, err
}

func newTagDelete() *cobra.Command {
	var a admin
	var yes bool
	cmd := &cobra.Command{
		Use:   "delete TAG",
		Short: "Delete a tag",
		Long: `Delete a tag from the store. Servers stop handing out its IDs within a minute.

It shows what will be lost and asks before it does so; where there is no terminal it
needs --yes.

Mind: ` + noteDelete,
		Example: `  leaf tag delete order
  leaf tag delete order --yes`,
		Args:              tagArg,
		ValidArgsFunction: a.completeTag,
		RunE: a.runs(func(cmd *cobra.Command, args []string) error {
			tag, err := a.findTag(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			a.warn(cmd, lost(tag)+"\n"+noteDelete)
			if err := confirm(cmd, yes, "delete "+cli.Printable(tag.Tag)); err != nil {
				return err
			}
			return a.printTag(cmd, "deleted", tag, a.deleteTag(cmd.Context(), tag.Tag))
		}),
	}
	a.addChangeFlags(cmd, storeFlag())
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// lost says what goes with a tag, and how to create it again.
func lost(t tagRow) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s will be lost: step %d, max_id %d, last used %s", cli.Printable(t.Tag), t.Step, t.MaxID, moment(t.Updated))
	for _, about := range t.about() {
		text.WriteString(", " + cli.Printable(about))
	}
	fmt.Fprintf(&text, "\nTo create it again above its IDs: leaf tag create %s --step %d", shellWord(t.Tag), t.Step)
	options := t.Options.With(segment.Describe(t.Description)).With(segment.TagOptions{segment.OptionMask: ""}) // which the name gets no more
	for _, name := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(&text, " --%s %s", name, shellWord(options[name]))
	}
	return text.String()
}

// findTag returns a tag as it is listed.
func (a *admin) findTag(ctx context.Context, name string) (tagRow, error) {
	tags, err := a.listTags(ctx)
	if err != nil {
		return tagRow{}, err
	}
	i := slices.IndexFunc(tags, func(t tagRow) bool { return t.Tag == name })
	if i < 0 {
		return tagRow{}, cli.Hinted(fmt.Errorf("tag %q: %w", name, leaf.ErrUnknownTag), "see 'leaf tag list' for its right name")
	}
	return tags[i], nil
}

// given returns value if the flag was on the command line, else nil.
func given[T any](cmd *cobra.Command, flag string, value *T) *T {
	if cmd.Flags().Changed(flag) {
		return value
	}
	return nil
}

// tagArg checks that a command gets one argument, which can be a tag.
func tagArg(cmd *cobra.Command, given []string) error {
	if err := args("TAG")(cmd, given); err != nil {
		return err
	}
	return cli.CheckTag(cmd, given[0])
}
