package lab

import "time"

// Schedules holds the results of one kind of the simulator's schedules.
type Schedules struct {
	Kind      string        `json:"kind"`
	Schedules int64         `json:"schedules"`
	Answered  int64         `json:"answered"` // calls
	IDs       int64         `json:"ids"`
	Failed    int64         `json:"failed"`   // calls
	Faults    int64         `json:"faults"`   // lost, late or unanswered messages, and steps of the schedules
	Searches  int64         `json:"searches"` // for an order of the calls to the store
	Undecided int64         `json:"undecided"`
	Virtual   time.Duration `json:"virtual_ns"`
	Took      time.Duration `json:"took_ns"` // by one process
	First     uint64        `json:"first"`   // of the seeds, all up to the last one
	Last      uint64        `json:"last"`
	Error     string        `json:"error,omitempty"` // what a checker found
}

// Overlaps reports whether both have a schedule in common. Results from before they had seeds do if
// they are equal.
func (s *Schedules) Overlaps(o Schedules) bool {
	if s.First == 0 || o.First == 0 {
		return *s == o
	}
	return s.Kind == o.Kind && s.First <= o.Last && o.First <= s.Last
}

// Save adds it to those in the folder of a report.
func (s *Schedules) Save(dir string) error { return appendLine(dir, "schedules.jsonl", s) }

// Simulated returns what [Schedules.Save] saved in the folder of a report.
func Simulated(dir string) ([]Schedules, error) { return readLines[Schedules](dir, "schedules.jsonl") }

// A Search is one that looked for an order of the calls to a real store.
type Search struct {
	Test      string `json:"test"`
	Seed      uint64 `json:"seed"`
	Calls     int    `json:"calls"`
	Undecided bool   `json:"undecided"`
}

// Save adds it to those in the folder of a report.
func (s *Search) Save(dir string) error { return appendLine(dir, "searches.jsonl", s) }

// Searches returns what [Search.Save] saved in the folder of a report.
func Searches(dir string) ([]Search, error) { return readLines[Search](dir, "searches.jsonl") }

// A Saboteur is a broken rule, and how long the lab needed to notice.
type Saboteur struct {
	Rule      string        `json:"rule"`
	What      string        `json:"what"` // is broken
	Kind      string        `json:"kind"` // of the schedules
	Schedules int64         `json:"schedules"`
	Took      time.Duration `json:"took_ns"`
	Sign      string        `json:"sign"` // what was found; empty: nothing
}

// Save adds it to those in the folder of a report.
func (s *Saboteur) Save(dir string) error { return appendLine(dir, "saboteurs.jsonl", s) }

// Saboteurs returns what [Saboteur.Save] saved in the folder of a report.
func Saboteurs(dir string) ([]Saboteur, error) { return readLines[Saboteur](dir, "saboteurs.jsonl") }

// A Part is one of the commands that a run of the lab consists of.
type Part struct {
	Name   string        `json:"name"`
	Budget time.Duration `json:"budget_ns"` // that it should need at most
	Took   time.Duration `json:"took_ns"`
	Error  string        `json:"error,omitempty"`
}

// Save adds it to those in the folder of a report.
func (p *Part) Save(dir string) error { return appendLine(dir, "parts.jsonl", p) }

// Parts returns what [Part.Save] saved in the folder of a report.
func Parts(dir string) ([]Part, error) { return readLines[Part](dir, "parts.jsonl") }
