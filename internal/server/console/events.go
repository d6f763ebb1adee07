package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/segment"
)

var (
	errNoFile = fmt.Errorf("%w: the console has no such file", frontend.ErrNoRoute)
	errFull   = errors.New("too many consoles are open")
)

const (
	maxTags      = 100              // that a page names
	maxPoints    = 300              // of a history in an answer
	writeTimeout = 10 * time.Second // for one event
	silence      = 10 * time.Second // before the server shows that it is alive
)

// A hello is the first event. It tells the page the rights of its reader, and the past.
type hello struct {
	Name    string               `json:"name"`
	Read    bool                 `json:"read"`
	Admin   bool                 `json:"admin"`
	Tokens  bool                 `json:"tokens"` // the server knows some
	Bounds  []float64            `json:"bounds"` // of latencies, in seconds
	History []map[string]float64 `json:"history"`
	Options []option             `json:"options"`
}

// An option is one that tags can have: the page makes a field of it. The description is not among
// them: it has a place of its own.
type option struct {
	Name  string `json:"name"`
	Usage string `json:"usage"`
	Fixed bool   `json:"fixed"` // only new tags get it
}

func tagOptions() (all []option) {
	for _, o := range segment.KnownOptions() {
		if o.Name != segment.OptionDescription {
			all = append(all, option{o.Name, o.Usage, o.Fixed})
		}
	}
	return all
}

// A sample is an event with a snapshot. Numbers of IDs are strings: they exceed 2^53.
type sample struct {
	Time      int64                          `json:"time"` // Unix milliseconds
	Values    map[string]map[string]float64  `json:"values"`
	Latencies map[string]map[string][]uint64 `json:"latencies"`
	Tags      []sampleTag                    `json:"tags"`
}

type sampleTag struct {
	Name     string          `json:"name"`
	Rate     float64         `json:"rate"`
	Segments []sampleSegment `json:"segments"`
	Error    string          `json:"error,omitempty"`
	Since    int64           `json:"since,omitempty"`
}

type sampleSegment struct {
	Start string `json:"start"`
	End   string `json:"end"`
	Next  string `json:"next"`
}

// events sends a snapshot each second until the page, the server or the caller's right is gone.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	caller, err := c.opts.Admit(r, access.Read)
	if err != nil {
		frontend.WriteProblem(w, err)
		return
	}
	tags := r.URL.Query()["tag"]
	if len(tags) > maxTags {
		frontend.WriteProblem(w, fmt.Errorf("%w: more than %d tags", leaf.ErrInvalid, maxTags))
		return
	}
	p := c.live.open(tags)
	if p == nil {
		frontend.WriteProblem(w, &access.LimitError{What: errFull.Error(), RetryAfter: silence})
		return
	}
	defer c.live.close(p)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", frontend.NoStore[0])
	s := stream{w, http.NewResponseController(w)}
	err = s.send("hello", hello{caller.Name(), true, caller.May(access.Admin) == nil, c.opts.Access.Tokens() > 0, boundSeconds(), c.live.schemes(), tagOptions()})
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-c.opts.Stopping:
			_ = s.send("stopping", struct{}{}) // the page may be gone
			return
		case next := <-p.next:
			if caller.May(access.Read) != nil {
				return
			}
			err = s.send("sample", c.sample(next))
		case <-time.After(silence):
			err = s.comment()
		}
	}
}

// A stream writes server-sent events.
type stream struct {
	w       io.Writer
	control *http.ResponseController
}

func (s stream) send(name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

func (s stream) comment() error { return s.write(": \n\n") }

func (s stream) write(text string) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // only a test has a writer without deadlines
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.control.Flush()
}

func (c *Console) sample(s *telemetry.Snapshot) sample {
	out := sample{Time: s.Time.UnixMilli(), Values: s.Values, Latencies: s.Latencies, Tags: make([]sampleTag, len(s.Tags))}
	for i, t := range s.Tags {
		tag := sampleTag{Name: t.Tag, Rate: t.Rate, Segments: make([]sampleSegment, len(t.Segments))}
		for j, seg := range t.Segments {
			tag.Segments[j] = sampleSegment{decimal(seg.Range.Start), decimal(seg.Range.End), decimal(seg.Next)}
		}
		if t.Err != nil {
			tag.Error, tag.Since = c.opts.ErrorText(t.Err), t.FailingSince.UnixMilli()
		}
		out.Tags[i] = tag
	}
	return out
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func boundSeconds() (list []float64) {
	for _, b := range telemetry.LatencyBounds() {
		list = append(list, b.Seconds())
	}
	return list
}

func schemeIn(labels string) string {
	scheme, _, _ := strings.Cut(labels, "|")
	return scheme
}

// history answers with the past of one tag, as far as snapshots had it: time in milliseconds, IDs
// issued, stock and step.
func (c *Console) history(w http.ResponseWriter, r *http.Request) {
	if _, err := c.opts.Admit(r, access.Read); err != nil {
		frontend.WriteProblem(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", frontend.NoStore[0])
	_ = json.NewEncoder(w).Encode(c.live.tag(r.URL.Query().Get("tag"))) // a vanished client needs no answer
}

// schemes returns the history of all schemes, under their names, with the time in milliseconds
// under "".
func (l *live) schemes() []map[string]float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]map[string]float64, 0, maxPoints)
	for _, p := range thin(l.points) {
		m := map[string]float64{"": float64(p.at.UnixMilli())}
		maps.Copy(m, p.issued)
		list = append(list, m)
	}
	return list
}

func (l *live) tag(name string) [][4]float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := [][4]float64{}
	for _, p := range l.points {
		if t, ok := p.tags[name]; ok {
			list = append(list, [4]float64{float64(p.at.UnixMilli()), t[0], t[1], t[2]})
		}
	}
	return thin(list)
}

// thin leaves out some of too many, and keeps the last one.
func thin[T any](list []T) []T {
	every := (len(list) + maxPoints - 1) / maxPoints
	if every <= 1 {
		return list
	}
	var some []T
	for i := (len(list) - 1) % every; i < len(list); i += every {
		some = append(some, list[i])
	}
	return some
}
