package saboteurs

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed edges.txt
var edges string

// An edge is a fault in front of the generators: in an event loop, TLS, a protocol or the client; and
// the tests of a package that have to notice it.
type edge struct{ fault, folder, tests string }

// readEdges reads lines such as "loop drain: internal/server/conns TestShutdown".
func readEdges(text string) (all []edge, err error) {
	for line := range strings.Lines(text) {
		fault, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		folder, tests, ok := strings.Cut(rest, " ")
		if !ok {
			return nil, fmt.Errorf("edges.txt: %q names no test", line)
		}
		all = append(all, edge{fault, folder, tests})
	}
	return all, nil
}
