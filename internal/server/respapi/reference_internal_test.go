package respapi

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The table of docs/redis-protocol.md names each command, and no other.
func TestReferenceOfCommands(t *testing.T) {
	text, err := os.ReadFile("../../../docs/redis-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Which commands are there?")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]bool{}
	for line := range strings.Lines(section) {
		cells := strings.SplitN(line, " | ", 2)
		if strings.HasPrefix(line, "| `") && len(cells) == 2 {
			for _, m := range regexp.MustCompile("`([A-Z.]+)").FindAllStringSubmatch(cells[0], -1) {
				documented[m[1]] = true
			}
		}
	}
	if len(documented) < 10 {
		t.Fatalf("the table has %d commands", len(documented))
	}
	for _, c := range newTable() {
		if !documented[c.name] && c.name != "GET" { // the page has that among the refusals
			t.Errorf("docs/redis-protocol.md does not list %s", c.name)
		}
		delete(documented, c.name)
	}
	for name := range documented {
		t.Errorf("docs/redis-protocol.md lists %s, which the server does not know", name)
	}
}
