package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

const style = `<style>text{fill:#222}.a{fill:#2a7de1}.b{fill:#9cc3f0}.line{fill:none;stroke-width:2}` +
	`@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>` + "\n"

func openSVG(s *strings.Builder, width, height int) {
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	s.WriteString(style)
}

// logScale maps positive numbers to 0 … width.
func logScale(values []float64, width float64) func(float64) float64 {
	low, high := math.Log10(slices.Min(values))-.3, math.Log10(slices.Max(values))
	return func(x float64) float64 { return max(1, width*(math.Log10(x)-low)/max(high-low, 1e-9)) }
}

// bars draws two bars for each row.
type bars struct {
	title string
	rows  []bar
}

type bar struct {
	name string
	at   [2]float64
}

func (b *bars) add(name string, one, other float64) {
	b.rows = append(b.rows, bar{name, [2]float64{one, other}})
}

func (b *bars) svg() string {
	const left, width, high = 300, 460, 34
	var values []float64
	for _, r := range b.rows {
		values = append(values, r.at[:]...)
	}
	scale := logScale(values, width)
	var s strings.Builder
	openSVG(&s, left+width+80, len(b.rows)*high+40)
	for i, r := range b.rows {
		fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-8, i*high+20, html.EscapeString(r.name))
		for k, class := range []string{"a", "b"} {
			top, long := i*high+4+13*k, scale(r.at[k])
			fmt.Fprintf(&s, `<rect x="%d" y="%d" width="%.1f" height="12" class="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
				left, top, long, class, left+long+4, top+10, short(r.at[k]))
		}
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d">%s</text></svg>`+"\n", left, len(b.rows)*high+24, html.EscapeString(b.title))
	return s.String()
}

// curves draws lines over the same points, on a logarithmic scale.
type curves struct {
	title string
	at    []string // names of the points
	lines []curve
}

type curve struct {
	name string
	ys   []float64
}

func (c *curves) add(name string, ys []float64) { c.lines = append(c.lines, curve{name, ys}) }

var lineColors = []string{"#2a7de1", "#e1812a", "#3a923a"}

func (c *curves) svg() string {
	const left, width, height = 60, 640, 300
	var values []float64
	for _, l := range c.lines {
		values = append(values, l.ys...)
	}
	scale := logScale(values, height-20)
	x := func(i int) float64 { return left + float64(i)*width/float64(len(c.at)-1) }
	var s strings.Builder
	openSVG(&s, left+width+80, height+60+20*len(c.lines))
	for i, name := range c.at {
		fmt.Fprintf(&s, `<text x="%.0f" y="%d" text-anchor="middle">%s</text>`+"\n", x(i), height+16, name)
	}
	for k, l := range c.lines {
		color := lineColors[k%len(lineColors)]
		var points []string
		for i, y := range l.ys {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), height-scale(y)))
			fmt.Fprintf(&s, `<text x="%.1f" y="%.1f" font-size="9">%s</text>`+"\n", x(i)+3, height-scale(y)-3-float64(9*k), short(y))
		}
		fmt.Fprintf(&s, `<polyline class="line" stroke="%s" points="%s"/>`+"\n", color, strings.Join(points, " "))
		fmt.Fprintf(&s, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			left, height+30+20*k, color, left+18, height+40+20*k, html.EscapeString(l.name))
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d">%s</text></svg>`+"\n", left, height+50+20*len(c.lines), html.EscapeString(c.title))
	return s.String()
}
