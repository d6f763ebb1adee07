//go:build docs

package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// WriteDocs makes a program built with the tag docs write the man pages of its commands and the
// completions for shells into the folder of its one argument, and end. The build tag keeps the
// library for that out of the product.
func WriteDocs(root *cobra.Command) {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "docs: the folder is missing")
		os.Exit(ExitUsage)
	}
	folder := os.Args[1]
	root.DisableAutoGenTag = true
	err := writePages(root, filepath.Join(folder, "man"))
	if err == nil {
		err = writeCompletions(root, filepath.Join(folder, "completions"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func writePages(cmd *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if cmd.Name() == "help" || cmd.Hidden {
		return nil
	}
	for _, c := range cmd.Commands() {
		if err := writePages(c, folder); err != nil {
			return err
		}
	}
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ") // Markdown's indent of an example
	day := time.Now()
	if date, err := time.Parse(time.RFC3339, ThisBuild().Date); err == nil {
		day = date
	}
	var page, packed bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Source: "Leaf " + ThisBuild().Version, Manual: "Leaf", Date: &day}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return err
	}
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is one of gzip's
	if _, err := page.WriteTo(w); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1.gz"
	return os.WriteFile(filepath.Join(folder, name), packed.Bytes(), 0o644)
}

func writeCompletions(root *cobra.Command, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		root.Name() + ".bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_" + root.Name():     root.GenZshCompletion,
		root.Name() + ".fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		root.Name() + ".ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		var text bytes.Buffer
		if err := write(&text); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
