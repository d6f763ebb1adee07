package httpapi

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html"
	"net/http"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/segment"
)

// The two pages have the columns of Java Leaf's. A page is written row by row, so that
// a table of any length needs no memory. They are written without html/template: a program that
// links it keeps every exported method of every type.
const (
	pageStart = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>` + pageStyle + `</style>
`
	pageEnd = "</body></html>\n"
)

// pageStyle is between the tags of the pages' style, byte for byte: the policy names it by
// its digest.
const pageStyle = `
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { font-size: 1.3rem; font-weight: 600 }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .35rem .6rem; text-align: right; font-variant-numeric: tabular-nums }
th { font-weight: 600 }
th:first-child, td:first-child { overflow-wrap: anywhere; text-align: left }
tbody tr:hover { background: #8882 }
.error { color: #c33 }
`

// pagePolicy lets a page have its style and nothing else.
var pagePolicy = func() []string {
	digest := sha256.Sum256([]byte(pageStyle))
	return []string{"default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}
}()

// A page writes a table. Its head waits for the first row, or for the end, so that a
// failure before that can still be answered as one.
type page struct {
	Title   string
	Columns []string

	w       http.ResponseWriter
	buf     *bufio.Writer
	started bool
}

func (p *page) start() {
	if p.started {
		return
	}
	p.started = true
	p.w.Header()["Content-Type"] = htmlText
	p.w.Header()["Cache-Control"] = frontend.NoStore
	p.w.Header()["Content-Security-Policy"] = pagePolicy
	p.buf = bufio.NewWriterSize(p.w, 16<<10)
	title := html.EscapeString(p.Title)
	_ = p.write(pageStart, "<title>Leaf: ", title, "</title></head>\n<body><h1>", title, "</h1>\n<table><thead>", tableRow("th", p.Columns...), "</thead><tbody>\n")
}

func (p *page) row(cells ...any) error {
	p.start()
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = fmt.Sprint(cell)
	}
	return p.write(tableRow("td", texts...), "\n")
}

// write returns the error of the connection, if any; so do all later calls.
func (p *page) write(texts ...string) error {
	var err error
	for _, text := range texts {
		_, err = p.buf.WriteString(text)
	}
	return err
}

func tableRow(element string, cells ...string) string {
	var row strings.Builder
	row.WriteString("<tr>")
	for _, cell := range cells {
		row.WriteString("<" + element + ">" + html.EscapeString(cell) + "</" + element + ">")
	}
	row.WriteString("</tr>")
	return row.String()
}

// end ends the page; early says why it does so before its last row.
func (p *page) end(early string) {
	p.start()
	if early != "" {
		early = `<p class="error">The list ends here: ` + html.EscapeString(early) + "</p>"
	}
	_ = p.write("</tbody></table>", early, pageEnd)
	_ = p.buf.Flush() // a vanished client needs no answer
}

func (h *handler) cache(w http.ResponseWriter, r *http.Request) {
	if h.Tags == nil {
		segmentOff(w, r)
		return
	}
	p := &page{w: w, Title: "Segments in memory", Columns: []string{
		"name", "init", "next", "pos", "value0", "max0", "step0", "value1", "max1", "step1",
	}}
	for _, s := range h.Tags.Stats() {
		first, second := javaSegment(s, 0), javaSegment(s, 1)
		err := p.row(s.Tag, s.Loaded, len(s.Segments) > 1, 0, // the current segment is always shown first
			first.Next, first.Range.End, first.Range.Len(), second.Next, second.Range.End, second.Range.Len())
		if err != nil {
			return // the client has gone
		}
	}
	p.end("")
}

func javaSegment(s segment.Stats, i int) segment.SegmentStats {
	if i < len(s.Segments) {
		return s.Segments[i]
	}
	return segment.SegmentStats{}
}

func (h *handler) db(w http.ResponseWriter, r *http.Request) {
	if h.Tags == nil {
		segmentOff(w, r)
		return
	}
	p := &page{w: w, Title: "Tags in the store", Columns: []string{"tag", "max", "step", "update"}}
	for tag, err := range h.Tags.All(r.Context()) {
		if err != nil && !p.started {
			h.fail(w, r, err)
			return
		}
		if err != nil {
			p.end(frontend.Text(err))
			return
		}
		if err := p.row(tag.Name, tag.MaxID, tag.Step, javaTime(tag.Updated)); err != nil {
			return // the client has gone
		}
	}
	p.end("")
}

func javaTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format("2006-01-02 15:04:05.0")
}
