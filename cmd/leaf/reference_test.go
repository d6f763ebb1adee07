package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/leaf-id/leaf/internal/testserver"
)

const commandsPage = `# Commands

Every command of ` + "`leaf`" + ` with its flags, as ` + "`leaf COMMAND --help`" + ` prints it. The load generator has
[a page of its own](leaf-bench.md). ` + "`make reference`" + ` writes this page from the code.
`

// docs/commands.md is the help of all commands.
func TestReferenceOfCommands(t *testing.T) {
	var page strings.Builder
	page.WriteString(commandsPage)
	writeHelp(t, &page, newRoot())
	testserver.Page(t, "../../docs/commands.md", page.String())
}

func writeHelp(t *testing.T, page *strings.Builder, cmd *cobra.Command) {
	t.Helper()
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	var help bytes.Buffer
	cmd.SetOut(&help)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(page, "\n## %s\n\n```text\n%s\n```\n", cmd.CommandPath(), strings.TrimSpace(help.String()))
	for _, c := range cmd.Commands() {
		writeHelp(t, page, c)
	}
}
