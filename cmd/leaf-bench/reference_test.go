package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

const benchPage = `# The load generator

` + "`leaf-bench`" + ` puts load on a running server and compares every ID.
[measure.md](measure.md) shows how to read its figures.
` + "`make reference`" + ` writes this page from the code.

` + "```text\n%s\n```\n"

// docs/leaf-bench.md is the help of the command.
func TestReference(t *testing.T) {
	root := newRoot()
	var help bytes.Buffer
	root.SetOut(&help)
	if err := root.Help(); err != nil {
		t.Fatal(err)
	}
	testserver.Page(t, "../../docs/leaf-bench.md", fmt.Sprintf(benchPage, strings.TrimSpace(help.String())))
}
