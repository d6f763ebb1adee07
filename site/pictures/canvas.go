package main

import (
	"fmt"
	"html"
	"strings"
)

// width is that of every picture. A phone shows it at two thirds, so the text is large.
const width = 520

// style has the colours, for light and for dark surroundings.
const style = `<style>` +
	`text{fill:#24292f}.dim{fill:#6a737d}.on{fill:#fff}.line{stroke:#57606a;fill:none}.dash{stroke-dasharray:5 4}` +
	`.box{fill:#f6f8fa;stroke:#8c959f}.a{fill:#2f7d32}.b{fill:#2a6fc9}.c{fill:#b35900}.lost{fill:url(#lost);stroke:#8c959f}` +
	`.soft{fill:#d7ebd8}.softb{fill:#d5e5f8}.bad{stroke:#c62828;fill:none}.head{fill:#57606a}.stripe{stroke:#8c959f}` +
	`@media(prefers-color-scheme:dark){` +
	`text{fill:#e6edf3}.dim{fill:#9aa4ae}.on{fill:#fff}.line{stroke:#9aa4ae}.box{fill:#22272e;stroke:#6e7681}` +
	`.a{fill:#388e3c}.b{fill:#3a7bd5}.c{fill:#b8651b}.soft{fill:#234426}.softb{fill:#1f3b5e}.lost,.stripe{stroke:#6e7681}` +
	`.bad{stroke:#ff7b72}.head{fill:#9aa4ae}}</style>` +
	`<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">` +
	`<path class="head" d="M0 0L8 4L0 8z"/></marker>` +
	`<pattern id="lost" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">` +
	`<path class="stripe" d="M0 0V6"/></pattern></defs>` + "\n"

// A canvas collects the elements of a picture in one of two languages.
type canvas struct {
	chinese bool
	title   string
	height  int
	body    strings.Builder
}

func (c *canvas) svg() string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="system-ui,sans-serif" font-size="14" role="img"><title>%s</title>`+"\n%s%s</svg>\n",
		width, c.height, html.EscapeString(c.title), style, c.body.String())
}

// say chooses the text of the language.
func (c *canvas) say(english, chinese string) string {
	if c.chinese {
		return chinese
	}
	return english
}

// open sets the title and the height.
func (c *canvas) open(height int, english, chinese string) {
	c.height, c.title = height, c.say(english, chinese)
}

func (c *canvas) rect(x, y, w, h int, class string) {
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="%d" rx="3" class="%s"/>`+"\n", x, y, w, h, class)
}

// text writes at a point: anchor is start, middle or end.
func (c *canvas) text(x, y int, anchor, class, text string) {
	fmt.Fprintf(&c.body, `<text x="%d" y="%d" text-anchor="%s" class="%s">%s</text>`+"\n", x, y, anchor, class, html.EscapeString(text))
}

// box is a rectangle with centred lines of text.
func (c *canvas) box(x, y, w, h int, class, ink string, lines ...string) {
	c.rect(x, y, w, h, class)
	for i, line := range lines {
		c.text(x+w/2, y+h/2+5+18*i-9*(len(lines)-1), "middle", ink, line)
	}
}

func (c *canvas) line(x1, y1, x2, y2 int, class string) {
	fmt.Fprintf(&c.body, `<path d="M%d %dL%d %d" class="%s"/>`+"\n", x1, y1, x2, y2, class)
}

func (c *canvas) arrow(x1, y1, x2, y2 int, class string) {
	fmt.Fprintf(&c.body, `<path d="M%d %dL%d %d" class="%s" marker-end="url(#head)"/>`+"\n", x1, y1, x2, y2, class)
}

// cross marks a failure.
func (c *canvas) cross(x, y int) {
	fmt.Fprintf(&c.body, `<path d="M%d %dl12 12m0 -12l-12 12" class="bad" stroke-width="3"/>`+"\n", x-6, y-6)
}

// axis draws time from left to right.
func (c *canvas) axis(y int) {
	c.arrow(10, y, width-10, y, "line")
	c.text(width-10, y+18, "end", "dim", c.say("time", "时间"))
}
