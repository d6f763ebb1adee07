package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed explained.txt
var explained string

// readExplained returns the reasons why faults stay unnoticed, by their keys. A line names a
// fault; the indented lines below say why.
func readExplained(text string) (map[string]string, error) {
	reasons := map[string]string{}
	var group []string // faults with the same reason
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		switch indented := strings.HasPrefix(line, "\t"); {
		case trimmed == "":
			group = nil
		case strings.HasPrefix(line, "#"):
		case indented && len(group) == 0:
			return nil, fmt.Errorf("explained.txt: a reason without a fault: %s", trimmed)
		case indented:
			for _, key := range group {
				reasons[key] = strings.TrimSpace(reasons[key] + " " + trimmed)
			}
		default:
			group = append(group, trimmed)
		}
	}
	return reasons, nil
}

// table returns the result in Markdown.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| Package | Faults | Tried | Noticed | of them hung | Explained | Not run | Not noticed | Share |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	sum := row{folder: "**all**"}
	for _, r := range rows {
		b.WriteString(r.line())
		sum.all, sum.tried, sum.hung = sum.all+r.all, sum.tried+r.tried, sum.hung+r.hung
		sum.equal, sum.unrun, sum.unnoticed = append(sum.equal, r.equal...), append(sum.unrun, r.unrun...), append(sum.unnoticed, r.unnoticed...)
	}
	b.WriteString(sum.line())
	return b.String()
}

// line returns the share of the faults that a test can notice. Those that no test runs count against it.
func (r *row) line() string {
	noticed := r.tried - len(r.equal) - len(r.unrun) - len(r.unnoticed)
	share := 100 * float64(noticed) / float64(max(1, r.tried-len(r.equal)))
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %d | %.1f %% |\n",
		r.folder, r.all, r.tried, noticed, r.hung, len(r.equal), len(r.unrun), len(r.unnoticed), share)
}
