package lab

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A search looks for an order of calls that explains their answers. Each call takes effect between
// its beginning and its end; one with an unknown outcome takes effect at any time after its
// beginning, or never.
//
// A search that tries every place of every unknown call doubles with each of them. This one tries
// them only where they change the state, takes calls that do the same for one another, and drops a
// state from which no next call can be reached. So the answered calls lead it nearly straight
// through.
type search struct {
	answered []porcupine.Operation // by their beginning
	unknown  []unknownCalls
	step     func(state, input any) []any
	reach    func(state any, next, unknown []any) bool // false: no unknown calls lead to one of the next
	seen     map[string]bool
	steps    int
}

// unknownCalls are those that do the same.
type unknownCalls struct {
	input any
	begin []int64 // in order
}

// mostSteps bounds a search.
const mostSteps = 1_000_000

// A point is how far an order has come.
type point struct {
	state any
	first int   // the calls before are in the order
	ahead []int // calls after the first that are
	used  []int // unknown calls, by kind
}

func newSearch(all []porcupine.Operation, step func(state, input any) []any, reach func(state any, next, unknown []any) bool) *search {
	s := &search{step: step, reach: reach, seen: map[string]bool{}}
	for _, op := range slices.SortedFunc(slices.Values(all), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) }) {
		if !isUnknown(op.Input) {
			s.answered = append(s.answered, op)
			continue
		}
		i := slices.IndexFunc(s.unknown, func(u unknownCalls) bool { return u.input == op.Input })
		if i < 0 {
			i, s.unknown = len(s.unknown), append(s.unknown, unknownCalls{input: op.Input})
		}
		s.unknown[i].begin = append(s.unknown[i].begin, op.Call)
	}
	return s
}

// run reports whether there is an order; it has not decided that if it took too many steps.
func (s *search) run(first any) (found, decided bool) {
	found = s.from(point{state: first, used: make([]int, len(s.unknown))})
	return found, found || s.steps <= mostSteps
}

func (s *search) from(p point) bool {
	if p.first == len(s.answered) {
		return true
	}
	key := p.key()
	if s.steps++; s.steps > mostSteps || s.seen[key] {
		return false
	}
	s.seen[key] = true
	next, deadline := s.next(p)
	for _, i := range next {
		if to := s.step(p.state, s.answered[i].Input); len(to) > 0 && s.from(p.with(i, to[0])) {
			return true
		}
	}
	open := s.open(p, deadline)
	if !s.reach(p.state, s.inputs(next), s.kinds(open)) {
		return false
	}
	for _, k := range open {
		to := s.step(p.state, s.unknown[k].input)
		if last := to[len(to)-1]; last != p.state {
			q := p
			q.state, q.used = last, slices.Clone(p.used)
			q.used[k]++
			if s.from(q) {
				return true
			}
		}
	}
	return false
}

// next returns the answered calls that may be the next of the order, and the end of the first one
// to end: all others have to begin before it.
func (s *search) next(p point) (next []int, deadline int64) {
	deadline = s.answered[p.first].Return
	for i := p.first; i < len(s.answered) && s.answered[i].Call <= deadline; i++ {
		if !slices.Contains(p.ahead, i) {
			next, deadline = append(next, i), min(deadline, s.answered[i].Return)
		}
	}
	return slices.DeleteFunc(next, func(i int) bool { return s.answered[i].Call > deadline }), deadline
}

// open returns the kinds of unknown calls of which one may take effect now, the latest first: most
// calls take effect soon, or never.
func (s *search) open(p point, deadline int64) (open []int) {
	for k, u := range s.unknown {
		if used := p.used[k]; used < len(u.begin) && u.begin[used] <= deadline {
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b int) int {
		return cmp.Compare(s.unknown[b].begin[p.used[b]], s.unknown[a].begin[p.used[a]])
	})
	return open
}

func (s *search) inputs(calls []int) (inputs []any) {
	for _, i := range calls {
		inputs = append(inputs, s.answered[i].Input)
	}
	return inputs
}

func (s *search) kinds(open []int) (inputs []any) {
	for _, k := range open {
		inputs = append(inputs, s.unknown[k].input)
	}
	return inputs
}

// with returns the point after an answered call.
func (p point) with(i int, state any) point {
	p.state = state
	p.ahead = append(slices.Clone(p.ahead), i)
	slices.Sort(p.ahead)
	for len(p.ahead) > 0 && p.ahead[0] == p.first {
		p.first, p.ahead = p.first+1, p.ahead[1:]
	}
	return p
}

func (p point) key() string {
	key := binary.AppendUvarint(nil, uint64(p.first))
	key = binary.AppendUvarint(key, uint64(len(p.ahead)))
	for _, n := range slices.Concat(p.ahead, p.used) {
		key = binary.AppendUvarint(key, uint64(n))
	}
	return string(fmt.Append(key, p.state))
}
