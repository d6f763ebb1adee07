package lab

import (
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An Event is a fault that lasted for a while.
type Event struct {
	On         string // the server that it struck; empty: the store, or all
	Name       string
	Begin, End time.Duration
}

func (e Event) String() string {
	if e.On == "" {
		return e.Name
	}
	return e.On + ": " + e.Name
}

// The parts of a picture, in pixels.
const (
	left, width         = 290, 700 // of the time line; the names of faults are on its left
	rateTop, rateHeight = 40, 120
	waitTop, waitHeight = 180, 90
	faultTop, line      = 300, 15
	points              = 400 // of a curve, about
)

// Draw writes the picture of a scenario into a folder.
func (h *History) Draw(dir string, of *Result, events []Event, end time.Duration) error {
	picture := h.Picture(of.Name(), events, end)
	return os.WriteFile(filepath.Join(dir, of.Picture()), []byte(picture), 0o600)
}

// Picture returns a time line as SVG: answered and failed calls, how long the
// answered ones took, and each fault in a line of its own.
func (h *History) Picture(title string, events []Event, end time.Duration) string {
	var names []string
	for _, e := range events {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	p := picture{end: max(end, 1), slice: max(end/points, 100*time.Millisecond).Round(100 * time.Millisecond)}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`,
		left+width+10, faultTop+line*(len(names)+1))
	p.add(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	p.add(`<text x="10" y="20" font-size="15">%s</text>`, html.EscapeString(title))
	for i, name := range names {
		p.fault(faultTop+line*i, name, events)
	}
	took, failed := h.ended(p.slice, p.end)
	p.rates(took, failed)
	p.waits(took)
	p.add(`<text x="%d" y="%d">0 s</text><text x="%d" y="%d" text-anchor="end">%v</text>`,
		left, faultTop-12, left+width, faultTop-12, p.end.Round(time.Second))
	return p.text.String() + "</svg>\n"
}

// A picture is the state of one drawing.
type picture struct {
	text       strings.Builder
	end, slice time.Duration
}

func (p *picture) add(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *picture) x(t time.Duration) float64 { return left + width*float64(t)/float64(p.end) }

// fault draws when one struck, and shades the area above.
func (p *picture) fault(y int, name string, events []Event) {
	p.add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, left-8, y+line-4, html.EscapeString(name))
	for _, e := range events {
		if e.Name != name {
			continue
		}
		x, wide := p.x(e.Begin), max(p.x(e.End)-p.x(e.Begin), 1)
		p.add(`<rect x="%.0f" y="%d" width="%.0f" height="%d" fill="#d40" opacity="0.06"/>`, x, rateTop, wide, y-rateTop)
		p.add(`<rect x="%.0f" y="%d" width="%.0f" height="%d" fill="#d40" opacity="0.5"/><text x="%.0f" y="%d" font-size="9">%s</text>`,
			x, y+2, wide, line-4, x+1, y+line-4, html.EscapeString(e.On))
	}
}

// rates draws how many calls were answered, and how many failed.
func (p *picture) rates(good [][]time.Duration, bad []int) {
	most := 1
	for i := range good {
		most = max(most, len(good[i]), bad[i])
	}
	height := func(n int) float64 { return rateTop + rateHeight - rateHeight*float64(n)/float64(most) }
	p.curve("#07a", len(good), func(i int) float64 { return height(len(good[i])) })
	p.curve("#d40", len(bad), func(i int) float64 { return height(bad[i]) })
	p.add(`<text x="%d" y="%d" text-anchor="end">calls in %v, at most %d:</text>`, left-8, rateTop+12, p.slice, most)
	p.add(`<text x="%d" y="%d" text-anchor="end" fill="#07a">answered</text>`, left-8, rateTop+26)
	p.add(`<text x="%d" y="%d" text-anchor="end" fill="#d40">failed</text>`, left-8, rateTop+40)
}

// waits draws how long the answered calls took, on a scale where each fifth is ten times the
// one below: 0.1 ms to 10 s.
func (p *picture) waits(took [][]time.Duration) {
	height := func(d time.Duration) float64 {
		part := math.Log10(max(d.Seconds()*1e4, 1)) / 5
		return waitTop + waitHeight - waitHeight*min(part, 1)
	}
	quantile := func(q float64) func(int) float64 {
		return func(i int) float64 {
			if n := len(took[i]); n > 0 {
				return height(took[i][int(q*float64(n-1))])
			}
			return height(0)
		}
	}
	for _, t := range took {
		slices.Sort(t)
	}
	p.curve("#888", len(took), quantile(0.5))
	p.curve("#639", len(took), quantile(1))
	p.add(`<text x="%d" y="%d" text-anchor="end">time of an answered call, 0.1 ms to 10 s:</text>`, left-8, waitTop+12)
	p.add(`<text x="%d" y="%d" text-anchor="end" fill="#888">median</text>`, left-8, waitTop+26)
	p.add(`<text x="%d" y="%d" text-anchor="end" fill="#639">longest</text>`, left-8, waitTop+40)
}

func (p *picture) curve(color string, n int, y func(int) float64) {
	at := make([]string, n)
	for i := range at {
		at[i] = fmt.Sprintf("%.0f,%.0f", p.x(time.Duration(i)*p.slice), y(i))
	}
	p.add(`<polyline fill="none" stroke="%s" points="%s"/>`, color, strings.Join(at, " "))
}

// ended returns, of each slice of the time, how long the calls took that were answered in it, and
// how many failed. It leaves out pipelines.
func (h *History) ended(slice, end time.Duration) (took [][]time.Duration, failed []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	took, failed = make([][]time.Duration, end/slice+1), make([]int, end/slice+1)
	for _, r := range h.receipts {
		if i := int(r.End / slice); i >= 0 && i < len(took) && r.Calls <= 1 {
			took[i] = append(took[i], r.End-r.Begin)
		}
	}
	for _, f := range h.failures {
		if i := int(f.End / slice); i >= 0 && i < len(failed) && f.Calls <= 1 {
			failed[i]++
		}
	}
	return took, failed
}
