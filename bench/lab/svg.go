package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// bars draws a bar on a logarithmic scale for each row, on one goroutine and on the most.
func bars(all []measured) string {
	const left, width, high = 300, 460, 34
	scale := func(ns float64) float64 { return width * (math.Log10(ns) + 2) / 7 } // 0.01 ns … 100 µs
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		left+width+80, len(rows)*high+40)
	s.WriteString(`<style>text{fill:#222}.one{fill:#2a7de1}.all{fill:#9cc3f0}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>` + "\n")
	most := len(levels) - 1
	for i, r := range rows {
		y := i * high
		name := html.EscapeString(strings.ReplaceAll(r.name, "`", ""))
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, y+20, name)
		for _, at := range []int{0, most} {
			class := "one"
			top, ns := y+4, all[i][at].median()
			if at == most {
				top, class = top+13, "all"
			}
			fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.1f" height="12" class="%s"/><text x="%.1f" y="%d">%.3g ns</text>`+"\n",
				left, top, max(1, scale(ns)), class, left+max(1, scale(ns))+4, top+10, ns)
		}
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d">time of one ID, logarithmic: dark on one goroutine, light on %d</text></svg>`+"\n",
		left, len(rows)*high+24, levels[most])
	return s.String()
}
