package main

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/load"
)

// A resultJSON is a run of load as -o json prints it. Durations are in seconds, latencies
// in milliseconds.
type resultJSON struct {
	Server      string    `json:"server"`
	Protocol    string    `json:"protocol"`
	Scheme      string    `json:"scheme"`
	Keys        []string  `json:"keys"`
	Clients     int64     `json:"clients"`
	Connections int64     `json:"connections"`
	Pipeline    int64     `json:"pipeline"`
	Count       int64     `json:"ids_per_request"`
	Loop        string    `json:"loop"`
	WarmUp      float64   `json:"warm_up_s"`
	Duration    float64   `json:"duration_s"`
	Started     time.Time `json:"started"`
	Finished    time.Time `json:"finished"`
	Interrupted bool      `json:"interrupted"`

	Requests  requestsJSON      `json:"requests"`
	IDs       idsJSON           `json:"ids"`
	Latency   latencyJSON       `json:"latency_ms"`
	Corrected bool              `json:"latency_corrected"`
	Errors    []load.ErrorCount `json:"errors"`
	Check     load.Check        `json:"check"`
}

type requestsJSON struct {
	Asked     int64   `json:"asked_per_second"` // 0: as many as there can be
	Achieved  float64 `json:"achieved_per_second"`
	Sent      int64   `json:"sent"`
	Succeeded int64   `json:"succeeded"`
	Failed    int64   `json:"failed"`
	Unsent    int64   `json:"unsent"`
}

type idsJSON struct {
	Received  int64   `json:"received"`
	PerSecond float64 `json:"per_second"`
}

type latencyJSON struct {
	Mean  float64 `json:"mean"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p99.9"`
	P9999 float64 `json:"p99.99"`
	Max   float64 `json:"max"`
}

func (p *plan) toJSON(res *load.Result) resultJSON {
	l := res.Latency
	return resultJSON{
		Server: p.url(), Protocol: p.protocol, Scheme: p.scheme, Keys: p.keys,
		Clients: p.clients, Connections: cmp.Or(p.conns, p.clients), Pipeline: p.pipeline, Count: p.n, Loop: cli.Choose(l.Corrected, "open", "closed"),
		WarmUp: p.warmUp.Seconds(), Duration: p.duration.Seconds(),
		Started: res.Started.UTC(), Finished: res.Finished.UTC(), Interrupted: res.Interrupted,
		Requests:  requestsJSON{p.rate, round(res.RequestRate), res.Sent, res.Succeeded, res.Failed, res.Unsent},
		IDs:       idsJSON{res.IDs, round(res.IDRate)},
		Latency:   latencyJSON{ms(l.Mean), ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.P9999), ms(l.Max)},
		Corrected: l.Corrected, Errors: res.Errors, Check: res.Check,
	}
}

// spoken are the protocols for people.
var spoken = map[string]string{
	protoHTTP: "HTTP, Java Leaf's routes", protoV1: "HTTP, /v1", protoGRPC: "gRPC", protoRESP: "Redis protocol",
}

// url names the loaded server, without the token.
func (p *plan) url() string {
	scheme := cli.Choose(p.protocol == protoRESP, "redis", "http")
	return scheme + cli.Choose(p.https, "s", "") + "://" + p.addr
}

func (p *plan) toText(res *load.Result) string {
	var text strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&text, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("server", "%s, %s", p.url(), spoken[p.protocol])
	line("load", "%s of %s, %s, %s%s", p.scheme, quoteAll(p.keys), plural(p.clients, "client"), plural(p.n, "ID")+" a request", cli.Choose(p.pipeline > 1, fmt.Sprintf(", %d requests at once", p.pipeline), ""))
	if p.rate > 0 {
		line("loop", "open: %s requests a second are due; latency counts from when a request was due", thousands(p.rate))
	} else {
		line("loop", "closed: as many requests as there can be; latency hides stalls, see --rate")
	}
	line("measured", "%s%s", res.Finished.Sub(res.Started).Round(100*time.Millisecond), cli.Choose(res.Interrupted, ", interrupted", ""))
	line("requests", "%s, %s/s", thousands(res.Succeeded), thousands(int64(res.RequestRate)))
	if res.Unsent > 0 {
		line("unsent", "%s: all clients were busy when they were due, until the end", thousands(res.Unsent))
	}
	line("IDs", "%s, %s/s", thousands(res.IDs), thousands(int64(res.IDRate)))
	l := res.Latency
	line("latency", "p50 %s  p90 %s  p99 %s  p99.9 %s  p99.99 %s  max %s", short(l.P50), short(l.P90), short(l.P99), short(l.P999), short(l.P9999), short(l.Max))
	line("errors", "%s", cli.Choose(res.Failed == 0, "none", thousands(res.Failed)))
	for _, e := range res.Errors {
		line("", "%s  %s: %s", thousands(e.Count), e.Kind, cli.Printable(e.Example))
	}
	c := res.Check
	line("duplicates", "%s among %s IDs, warm-up included", cli.Choose(c.Duplicates == 0, "none", thousands(c.Duplicates)), thousands(c.Checked))
	if c.Kept < c.Checked {
		line("", "only the first %s were kept to compare with: see --memory", thousands(c.Kept))
	}
	return text.String()
}

func quoteAll(keys []string) string {
	const most = 5
	shown := make([]string, 0, most)
	for _, k := range keys[:min(len(keys), most)] {
		shown = append(shown, cli.Printable(k))
	}
	if len(keys) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(keys)-most))
	}
	return strings.Join(shown, ", ")
}

func plural(n int64, noun string) string {
	return thousands(n) + " " + noun + cli.Choose(n == 1, "", "s")
}

// thousands writes n in groups of three digits.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()/1000) / 1000 }

func round(rate float64) float64 { return float64(int64(rate*10+0.5)) / 10 }

// short writes a latency with three digits.
func short(d time.Duration) string {
	unit, name := time.Microsecond, "µs"
	switch {
	case d >= time.Second:
		unit, name = time.Second, "s"
	case d >= time.Millisecond:
		unit, name = time.Millisecond, "ms"
	}
	v, places := float64(d)/float64(unit), 0
	switch {
	case v < 10:
		places = 2
	case v < 100:
		places = 1
	}
	return strconv.FormatFloat(v, 'f', places, 64) + " " + name
}

// A progressBar shows on a terminal how far a run has come.
type progressBar struct {
	w      io.Writer // nil: no progress bar
	warmUp time.Duration
	total  time.Duration
	last   load.Progress
}

func newProgressBar(w io.Writer, warmUp, duration time.Duration, quiet bool) *progressBar {
	b := &progressBar{warmUp: warmUp, total: warmUp + duration}
	if !quiet && cli.IsTerminal(w) {
		b.w = w
	}
	return b
}

func (b *progressBar) show(p load.Progress) {
	if b.w == nil {
		return
	}
	const width = 20
	done := min(int(p.Elapsed*width/b.total), width)
	rate := float64(p.Requests-b.last.Requests) / (p.Elapsed - b.last.Elapsed).Seconds()
	b.last = p
	fmt.Fprintf(b.w, "\r\x1b[K[%s%s] %s of %s  %s requests/s  %s errors%s", strings.Repeat("=", done), strings.Repeat(" ", width-done),
		p.Elapsed.Round(100*time.Millisecond), b.total, thousands(int64(rate)), thousands(p.Failed), cli.Choose(p.WarmUp, "  (warm-up)", ""))
}

func (b *progressBar) clear() {
	if b.w != nil {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
}
