// Command report runs the fault lab, one part after the other, and writes the results into
// docs/reliability.md. A part that fails does not keep the others from running; the command then
// fails in the end.
//
//	go run ./lab/report                     everything, about 40 minutes
//	go run ./lab/report -only simulator     a part; the page stays as it is
//	go run ./lab/report -from DIR           the page again, from a run kept in DIR
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
	from := flag.String("from", "", "run nothing, and write the page from this folder")
	page := flag.String("page", "../docs/reliability.md", "the page that is written")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *from, *page); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, only, from, page string) error {
	dir, failed := from, error(nil)
	if from == "" {
		var err error
		if dir, err = os.MkdirTemp("", "leaf-lab-"); err != nil {
			return err
		}
		fmt.Println("lab: what the parts print, their results and pictures are kept in", dir)
		if failed = runParts(ctx, dir, only); errors.Is(failed, errNoPart) {
			return failed
		}
	}
	r, err := read(dir)
	if err != nil {
		return errors.Join(failed, err)
	}
	fmt.Print(r.budget(), "\n", r.summary(), "\n")
	if only != "" {
		return failed
	}
	if err := r.copyPictures(dir, filepath.Join(filepath.Dir(page), pictures)); err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.write(page, time.Now()))
}

// The marks between which the page is written.
const (
	begin     = "<!-- make lab writes from here -->\n"
	saboteurs = "<!-- make lab writes the saboteurs from here -->\n"
	end       = "<!-- to here -->\n"
)

// write replaces the text between the marks of a page. Parts missing from a run stay.
func (r *report) write(page string, now time.Time) error {
	old, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	text := string(old)
	if len(r.saboteurs) > 0 {
		text, err = replace(text, saboteurs, r.caught())
	}
	if err == nil && (len(r.results) > 0 || len(r.saboteurs) == 0) {
		text, err = replace(text, begin, r.text(now))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(text), 0o600)
}

func replace(page, begin, text string) (string, error) {
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("there are no marks %q and %q to write between", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + "\n" + strings.TrimSuffix(text, "\n") + "\n\n" + end + tail, nil
}
