package lab

import (
	"errors"
	"fmt"
	"math"
	"os"
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
	o.add(begin, end, advance{n, got, err != nil}, err != nil)
}

// GiveBack records the return of a range; with an error its outcome is unknown.
func (o *Ops) GiveBack(begin, end time.Duration, r leaf.Range, err error) {
	o.add(begin, end, giveBack{r.End, r.Start, err != nil}, err != nil)
}

// CheckCounter returns an error if no order of the calls, each between its beginning and its
// end, explains what they brought: the counter of a tag began at first. Where the search takes
// longer than limit, the error wraps [ErrUndecided].
func (o *Ops) CheckCounter(first int64, limit time.Duration) error {
	return o.check(func() []any { return []any{first} }, counterStep, limit)
}

// ErrUndecided is wrapped where the search for an order took too long.
var ErrUndecided = errors.New("no order was found, nor that there is none,")

func (o *Ops) check(init func() []any, step func(state, input any) []any, limit time.Duration) error {
	all := o.proven()
	model := porcupine.NondeterministicModel{
		Init:              init,
		Step:              func(state, input, _ any) []any { return step(state, input) },
		DescribeOperation: func(input, _ any) string { return fmt.Sprintf("%+v", input) },
	}
	result, info := porcupine.CheckOperationsVerbose(model.ToModel(), all, limit)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%w for the %d calls to the store within %v", ErrUndecided, len(all), limit)
	}
	kept, err := os.CreateTemp("", "leaf-linear-*.html")
	if err != nil {
		return err
	}
	err = errors.Join(porcupine.Visualize(model.ToModel(), info, kept), kept.Close())
	return errors.Join(fmt.Errorf("no order of the %d calls to the store explains their answers: see %s", len(all), kept.Name()), err)
}

// proven returns the calls without those that met what a swap wrote that was not acknowledged: a
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
func (o *Ops) CheckCell(first string, limit time.Duration) error {
	return o.check(func() []any { return []any{first} }, cellStep, limit)
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
