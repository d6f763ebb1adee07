package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leaf-id/leaf"
)

// Ops is a history of the calls that servers made to one counter, or to one cell. The zero
// value is empty and ready; its methods are safe for concurrent use.
type Ops struct {
	mu  sync.Mutex
	all []porcupine.Operation
}

// Len returns the number of calls.
func (o *Ops) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

// add records a call. Where its outcome is unknown it may have happened at any time after
// it was sent, or never.
func (o *Ops) add(begin, end time.Duration, input any, unknown bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	op := porcupine.Operation{ClientId: len(o.all), Input: input, Call: int64(begin), Return: int64(end)}
	if unknown {
		op.Return = math.MaxInt64
	}
	o.all = append(o.all, op)
}

// An advance moves a counter by n, to got.End; a set moves it to at.
type advance struct {
	n       int64
	got     leaf.Range
	unknown bool
}

type giveBack struct {
	from, to int64
	unknown  bool
}

// Advance records an allocation of n IDs; with an error its outcome is unknown.
func (o *Ops) Advance(begin, end time.Duration, n int64, got leaf.Range, err error) {
	if err != nil {
		got = leaf.Range{}
	}
	o.add(begin, end, advance{n, got, err != nil}, err != nil)
}

// GiveBack records the return of a range; with an error its outcome is unknown.
func (o *Ops) GiveBack(begin, end time.Duration, r leaf.Range, err error) {
	o.add(begin, end, giveBack{r.End, r.Start, err != nil}, err != nil)
}

// CheckCounter returns an error if no order of the calls, each between its beginning and its
// end, explains what they brought: the counter of a tag began at first. Where the search takes
// too many steps, the error wraps [ErrUndecided].
func (o *Ops) CheckCounter(first int64) error { return o.check(first, counterStep, counterReach) }

// ErrUndecided is wrapped where the search for an order took too many steps.
var ErrUndecided = errors.New("no order was found, nor that there is none,")

func (o *Ops) check(first any, step func(state, input any) []any, reach func(state any, next, unknown []any) bool) error {
	all := o.proven()
	found, decided := newSearch(all, step, reach).run(first)
	switch {
	case found:
		return nil
	case !decided:
		return fmt.Errorf("%w for the %d calls to the store, in %d steps", ErrUndecided, len(all), mostSteps)
	}
	picture, err := draw(first, all, step)
	return errors.Join(fmt.Errorf("no order of the %d calls to the store explains their answers: see %s", len(all), picture), err)
}

// draw has porcupine draw calls without an order, if it sees that in time.
func draw(first any, all []porcupine.Operation, step func(state, input any) []any) (name string, err error) {
	result, model, info := byPorcupine(first, all, step, 10*time.Second)
	if result != porcupine.Illegal {
		return fmt.Sprintf("no picture (porcupine: %s)", result), nil
	}
	kept, err := os.CreateTemp("", "leaf-linear-*.html")
	if err != nil {
		return "", err
	}
	return kept.Name(), errors.Join(porcupine.Visualize(model, info, kept), kept.Close())
}

func byPorcupine(first any, all []porcupine.Operation, step func(state, input any) []any, limit time.Duration) (porcupine.CheckResult, porcupine.Model, porcupine.LinearizationInfo) {
	model := (&porcupine.NondeterministicModel{
		Init:              func() []any { return []any{first} },
		Step:              func(state, input, _ any) []any { return step(state, input) },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}).ToModel()
	result, info := porcupine.CheckOperationsVerbose(model, all, limit)
	return result, model, info
}

// proven returns the calls without those that met the text of an unacknowledged swap: a
// registry may show that and lose it, see worker.Registry.
func (o *Ops) proven() (all []porcupine.Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	written, replaced := map[string]bool{}, map[string]bool{}
	for _, op := range o.all {
		if s, ok := op.Input.(swap); ok && s.outcome == Unknown {
			written[s.new], replaced[s.old] = true, true
		}
	}
	for _, op := range o.all {
		l, read := op.Input.(load)
		s, swapped := op.Input.(swap)
		if read && written[l.value] || swapped && s.outcome == Conflict && replaced[s.old] {
			continue
		}
		all = append(all, op)
	}
	return all
}

// counterStep returns the values that a counter may have after a call.
func counterStep(state, input any) []any {
	at := state.(int64)
	switch op := input.(type) {
	case advance:
		switch {
		case op.unknown:
			return []any{at, at + op.n}
		case op.got.Start == at:
			return []any{op.got.End}
		}
	case giveBack:
		switch {
		case op.unknown && at == op.from:
			return []any{at, op.to}
		case op.unknown:
			return []any{at}
		case at == op.from:
			return []any{op.to}
		}
	}
	return nil
}

// counterReach reports whether unknown calls may take a counter to where one of the next begins:
// allocations move it up, and a give-back moves it down from its end alone.
func counterReach(state any, next, unknown []any) bool {
	at := state.(int64)
	for _, input := range slices.Concat(next, unknown) {
		switch op := input.(type) {
		case advance:
			if !op.unknown && op.got.Start > at {
				return true
			}
		case giveBack:
			if op.from > at || op.unknown && op.from == at {
				return true
			}
		}
	}
	return false
}

type load struct{ value string }

type swap struct {
	old, new string
	outcome  Outcome
}

// An Outcome is a caller's knowledge of a swap.
type Outcome int

// The outcomes.
const (
	Done Outcome = iota
	Conflict
	Unknown
)

// Load records a read of a cell.
func (o *Ops) Load(begin, end time.Duration, value string) { o.add(begin, end, load{value}, false) }

// Swap records a compare-and-swap of a cell.
func (o *Ops) Swap(begin, end time.Duration, old, new string, outcome Outcome) {
	o.add(begin, end, swap{old, new, outcome}, outcome == Unknown)
}

// CheckCell is [Ops.CheckCounter] for a cell that began with the value first.
func (o *Ops) CheckCell(first string) error {
	return o.check(first, cellStep, func(any, []any, []any) bool { return true })
}

// isUnknown reports whether the outcome of a call is unknown.
func isUnknown(input any) bool {
	switch op := input.(type) {
	case advance:
		return op.unknown
	case giveBack:
		return op.unknown
	case swap:
		return op.outcome == Unknown
	}
	return false
}

// cellStep returns the values that a cell may have after a call.
func cellStep(state, input any) []any {
	at := state.(string)
	switch op := input.(type) {
	case load:
		if op.value == at {
			return []any{at}
		}
	case swap:
		switch matches := at == op.old; {
		case op.outcome == Unknown && matches:
			return []any{at, op.new}
		case op.outcome == Unknown, op.outcome == Conflict && !matches:
			return []any{at}
		case op.outcome == Done && matches:
			return []any{op.new}
		}
	}
	return nil
}
