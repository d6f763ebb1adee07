//go:build docs

package cli

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
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
	return errors.Join(
		root.GenBashCompletionFileV2(filepath.Join(folder, root.Name()+".bash"), true),
		root.GenZshCompletionFile(filepath.Join(folder, "_"+root.Name())),
		root.GenFishCompletionFile(filepath.Join(folder, root.Name()+".fish"), true),
		root.GenPowerShellCompletionFileWithDesc(filepath.Join(folder, root.Name()+".ps1")),
	)
}
