package lab

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leaf-id/leaf"
)

// Strict reports two calls for IDs of a space with strict order of which the later one, which began
// after the earlier one had ended, did not get larger IDs.
//
// It decides whether the calls are linearizable, in the time that sorting takes. The object is a
// counter with gaps: a call takes any range at or above the counter, and moves it to the range's
// end. (Calls without an answer, whatever they did, only leave gaps.) Only one order of such calls
// can explain their answers: that of their ranges, which must not overlap. So the calls are
// linearizable if and only if no call in that order ended before an earlier one began.
func (h *History) Strict(space string) error {
	highest, latest := new(Receipt), new(Receipt) // so far: the end of IDs, the beginning of a call
	for i, r := range h.sorted(byRange, of(space)) {
		switch {
		case r.Range.Empty() || r.Range.Start < 0:
			return fmt.Errorf("no range of IDs: %v", r)
		case i > 0 && r.Range.Start < highest.Range.End:
			return fmt.Errorf("issued twice: %v and %v", highest, r)
		case i > 0 && r.End < latest.Begin:
			return fmt.Errorf("the IDs of %s decrease: %v, and later %v", space, r, latest)
		}
		highest = r
		if i == 0 || r.Begin > latest.Begin {
			latest = r
		}
	}
	return nil
}

// Gapless reports the lowest missing number of a space, from first on, below others.
func (h *History) Gapless(space string, first int64) error {
	next := first
	for _, r := range h.sorted(byRange, of(space)) {
		if r.Range.Start > next {
			return fmt.Errorf("nobody received %v of %s, and later %v", leaf.Range{Start: next, End: r.Range.Start}, space, r)
		}
		next = max(next, r.Range.End)
	}
	return nil
}

// StrictPieces has porcupine decide the same as [History.Strict], for a few pieces of so many receipts
// in a row, spread over the history. It returns how many receipts it saw. A part of linearizable calls
// is linearizable: the missing calls only leave gaps.
func (h *History) StrictPieces(space string, pieces, size int) (seen int, err error) {
	all := h.sorted(byBegin, of(space))
	pieces = min(pieces, 1+len(all)/size)
	for i := range pieces {
		first := max(0, len(all)-size) * i / max(1, pieces-1)
		piece := all[first:min(len(all), first+size)]
		if !strictByPorcupine(piece) {
			err = errors.Join(err, fmt.Errorf("porcupine finds no order of the %d answers from %v on", len(piece), piece[0].Begin.Round(time.Millisecond)))
		}
		seen += len(piece)
	}
	return seen, err
}

// strictByPorcupine has porcupine look for an order. It would try those in which a higher range comes
// first, and each of them to its end; so the model has the calls by their rank, and takes them in
// that order alone. Ranges that overlap are no order of calls.
func strictByPorcupine(receipts []*Receipt) bool {
	ranked := slices.SortedFunc(slices.Values(receipts), byRange)
	all := make([]porcupine.Operation, 0, len(ranked))
	for rank, r := range ranked {
		if rank > 0 && r.Range.Start < ranked[rank-1].Range.End {
			return false
		}
		all = append(all, porcupine.Operation{ClientId: rank, Input: rank, Call: int64(r.Begin), Return: int64(r.End)})
	}
	return porcupine.CheckOperations(porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) { return input == state, state.(int) + 1 },
	}, all)
}
