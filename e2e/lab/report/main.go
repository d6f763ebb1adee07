// Command report runs the fault lab, one part after the other, and writes the sum into
// docs/reliability.md and the tables into docs/reliability-detail.md. A part that fails does not keep the others from running; the command then
// fails in the end.
//
//	go run ./lab/report                     everything, about 80 minutes
//	go run ./lab/report -only simulator     a part; the page stays as it is
//	go run ./lab/report -keep DIR -only clusters     a part that adds to the earlier ones in DIR
//	go run ./lab/report -keep DIR -only simulator -for 1h     more of the simulator's schedules
//	go run ./lab/report -from DIR[,DIR]     the pages again, from all runs kept in the folders
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "run only these parts, separated by commas")
	keep := flag.String("keep", "", "keep the results in this folder, and add those that it has")
	flag.DurationVar(&simulates, "for", 0, "run the simulator for so long, in rounds of 6 minutes")
	from := flag.String("from", "", "run nothing, and write the pages from these folders, separated by commas")
	page := flag.String("page", "../docs/reliability.md", "the page with the sum; that with the tables is beside it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *keep, *from, *page); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, only, keep, from, page string) error {
	dirs, failed := strings.Split(from, ","), error(nil)
	if from == "" {
		dir, err := folder(keep)
		if err != nil {
			return err
		}
		fmt.Println("lab: what the parts print, their results and pictures are kept in", dir)
		if failed = runParts(ctx, dir, only); errors.Is(failed, errNoPart) {
			return failed
		}
		dirs = []string{dir}
	}
	r, err := read(dirs...)
	if err != nil {
		return errors.Join(failed, err)
	}
	fmt.Print(r.budget(), "\n", r.summary(), "\n", r.simulator(), "\n")
	if only != "" {
		return failed
	}
	if err := r.copyPictures(dirs, filepath.Join(filepath.Dir(page), pictures)); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.write(page, time.Now()), r.balanced())
}

// folder returns the folder for the results of a run.
func folder(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "leaf-lab-")
	}
	keep, err := filepath.Abs(keep) // the parts run in other folders
	if err == nil {
		err = os.MkdirAll(keep, 0o700)
	}
	return keep, err
}

// The marks between which the pages are written.
const (
	sums      = "<!-- make lab writes the sum from here -->\n"
	simulator = "<!-- make lab writes the simulator from here -->\n"
	begin     = "<!-- make lab writes from here -->\n"
	saboteurs = "<!-- make lab writes the saboteurs from here -->\n"
	end       = "<!-- to here -->\n"
)

// detail returns the page with the tables.
func detail(page string) string { return strings.TrimSuffix(page, ".md") + "-detail.md" }

// write replaces the text between the marks of the pages. Parts missing from a run stay.
func (r *report) write(page string, now time.Time) error {
	var blocks []block
	if len(r.saboteurs) > 0 {
		blocks = append(blocks, block{detail(page), saboteurs, r.caught()})
	}
	if len(r.simulated) > 0 {
		text := written(now, r.simulator())
		blocks = append(blocks, block{page, simulator, text}, block{detail(page), simulator, text + "\n\n" + r.schedules()})
	}
	if len(r.results) > 0 || len(blocks) == 0 {
		blocks = append(blocks, block{page, sums, written(now, r.summary())}, block{detail(page), begin, r.text(now)})
	}
	for _, b := range blocks {
		old, err := os.ReadFile(b.page)
		if err != nil {
			return err
		}
		text, err := replace(string(old), b.begin, b.text)
		if err != nil {
			return fmt.Errorf("%s: %w", b.page, err)
		}
		if err := os.WriteFile(b.page, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A block is the text after a mark of a page.
type block struct{ page, begin, text string }

func replace(page, begin, text string) (string, error) {
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("there are no marks %q and %q to write between", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + "\n" + strings.TrimSuffix(text, "\n") + "\n\n" + end + tail, nil
}
