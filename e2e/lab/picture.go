package lab

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// An Event is a fault that lasted for a while.
type Event struct {
	Name       string
	Begin, End time.Duration
}

// Picture returns a time line as SVG: the faults, the calls that were answered in each tenth
// of a second, and those that failed.
func (h *History) Picture(title string, events []Event, end time.Duration) string {
	const width, height, left, top = 1000, 160, 10, 40
	x := func(t time.Duration) float64 { return left + width*float64(t)/float64(max(end, 1)) }
	var b strings.Builder
	bottom := top + height
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n",
		width+2*left, bottom+24+14*len(events))
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="15">%s</text>`+"\n", left, html.EscapeString(title))
	for i, e := range events {
		y := bottom + 24 + 14*i
		fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#d40" opacity="0.15"/>`+"\n",
			x(e.Begin), top, max(x(e.End)-x(e.Begin), 1), y-top)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", x(e.Begin), y, html.EscapeString(e.Name))
	}
	good, bad := h.rates(end)
	most := 1
	for i := range good {
		most = max(most, good[i], bad[i])
	}
	for rates, color := range map[*[]int]string{&good: "#07a", &bad: "#d40"} {
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" points="`, color)
		for i, n := range *rates {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(time.Duration(i)*slice), float64(bottom)-height*float64(n)/float64(most))
		}
		b.WriteString("\"/>\n")
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">0 s; blue: calls answered in 0.1 s, at most %d; red: failed</text>`+"\n", left, bottom+12, most)
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%v</text>`+"\n</svg>\n", left+width, bottom+12, end.Round(time.Second))
	return b.String()
}

// slice is the unit of a picture's time.
const slice = 100 * time.Millisecond

func (h *History) rates(end time.Duration) (good, bad []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	good, bad = make([]int, end/slice+1), make([]int, end/slice+1)
	count := func(into []int, at time.Duration) {
		if i := int(at / slice); i >= 0 && i < len(into) {
			into[i]++
		}
	}
	for i := range h.receipts {
		count(good, h.receipts[i].End)
	}
	for _, f := range h.failures {
		count(bad, f.End)
	}
	return good, bad
}
