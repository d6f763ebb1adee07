package lab

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Result is the outcome of one scenario. [Result.Save] makes it a line of JSON, and a
// report makes its tables from those lines.
type Result struct {
	Test   string `json:"test"` // with Seed it repeats the scenario: LEAF_SEED=… go test -run 'Cluster/redis' .
	Seed   uint64 `json:"seed"`
	Store  string `json:"store"`  // or registry
	Scheme string `json:"scheme"` // segment, snowflake, uid

	Nemeses map[string]int    `json:"nemeses"`         // how often each struck
	Holes   map[string]string `json:"holes,omitempty"` // why others cannot strike this store

	Answered int64 `json:"answered"` // calls
	Clients  int64 `json:"clients"`  // that were answered
	Ranges   int64 `json:"ranges"`   // of consecutive IDs, in one answer or pipeline

	IDs        int64   `json:"ids"`
	Duplicates int64   `json:"duplicates"`       // of what the product promises
	Documented int64   `json:"documented"`       // IDs issued twice within a limit that the documentation states
	Limit      string  `json:"limit,omitempty"`  // that limit
	Causes     []Cause `json:"causes,omitempty"` // of the documented ones

	Calls   int64         `json:"calls"` // answered or failed
	Failed  int64         `json:"failed"`
	Silence time.Duration `json:"silence_ns"` // the longest of one client, while faults struck
	Served  []Served      `json:"served,omitempty"`

	Crashes int64 `json:"crashes,omitempty"`
	Lost    int64 `json:"lost,omitempty"`   // IDs that were taken from the store, and neither received nor given back
	Budget  int64 `json:"budget,omitempty"` // the most that may be lost; 0: this store does not tell

	Took  time.Duration `json:"took_ns"`
	Error string        `json:"error,omitempty"` // what a checker found
}

// Served is how one client, or several of one protocol, were served.
type Served struct {
	Client       string        `json:"client"`
	IDs          int64         `json:"ids"`
	Failed       int           `json:"failed"`
	Silence      time.Duration `json:"silence_ns"`
	Availability float64       `json:"availability"` // the share of the time outside of silences of more than a second
}

// Result returns a scenario's IDs and calls from its history, and how some clients, all by default,
// were served between two times.
func (h *History) Result(from, to time.Duration, names ...string) (r Result) {
	r.IDs, r.Failed = h.Count()
	r.Answered = h.Answered()
	r.Calls = r.Answered + r.Failed
	h.mu.Lock()
	r.Ranges = int64(len(h.receipts))
	clients := map[string]bool{}
	for i := range h.receipts {
		clients[h.receipts[i].Client] = true
	}
	h.mu.Unlock()
	r.Clients = int64(len(clients))
	for _, c := range h.Clients(from, to) {
		if len(names) > 0 && !slices.Contains(names, c.Client) {
			continue
		}
		r.Silence = max(r.Silence, c.Silence)
		r.Served = append(r.Served, Served{Client: c.Client, IDs: c.IDs, Failed: c.Failed, Silence: c.Silence,
			Availability: 1 - float64(c.Away)/float64(max(to-from, 1))})
	}
	return r
}

// Name returns the name of the scenario: Cluster/redis.
func (r *Result) Name() string { return strings.TrimPrefix(r.Test, "Test") }

// Picture returns the name of its picture's file.
func (r *Result) Picture() string {
	return "lab-" + strings.ToLower(strings.ReplaceAll(r.Name(), "/", "-")) + ".svg"
}

// Strikes returns how many faults struck.
func (r *Result) Strikes() (n int) {
	for _, times := range r.Nemeses {
		n += times
	}
	return n
}

// Save adds the result to those in the folder of a report. Processes may do so at the same
// time.
func (r *Result) Save(dir string) error { return appendLine(dir, "results.jsonl", r) }

// SaveUnfinished adds the result of a run that ended before its checks: its answers do not count, and
// a report tells of it. It adds nothing for a run that took its time to the end, or without a folder.
func (r *Result) SaveUnfinished(dir string, h *History) error {
	if dir == "" || r.Took > 0 {
		return nil
	}
	unfinished := *r
	unfinished.Error = cmp.Or(h.Unique(), errUnfinished).Error()
	return unfinished.Save(dir)
}

var errUnfinished = errors.New("it ended before its checks")

// Results returns the results in the folder of a report, by test.
func Results(dir string) ([]Result, error) {
	all, err := readLines[Result](dir, "results.jsonl")
	slices.SortStableFunc(all, func(a, b Result) int { return cmp.Compare(a.Test, b.Test) })
	return all, err
}

// appendLine adds a line of JSON to a file of a report.
func appendLine(dir, name string, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("save a result: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("save a result: %w", err)
	}
	_, err = file.Write(append(line, '\n')) // one write: lines of others do not come between
	return errors.Join(err, file.Close())
}

// readLines reads what appendLine wrote.
func readLines[T any](dir, name string) (all []T, err error) {
	file, err := os.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("read %s: line %d: %w", name, len(all)+1, err)
		}
		all = append(all, v)
	}
	return all, lines.Err()
}

// Struck returns the names of all nemeses of the results, also of those in holes, in order.
func Struck(all []Result) []string {
	names := map[string]bool{}
	for _, r := range all {
		for name := range r.Nemeses {
			names[name] = true
		}
		for name := range r.Holes {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
