package lab

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leaf-id/leaf"
)

// A counterRun is a counter, and clients that lose some of its answers.
type counterRun struct {
	rng  *rand.Rand
	at   int64
	now  time.Duration
	ops  Ops
	late []int64 // allocations whose client has given up, and that take effect later
}

var errLost = errors.New("the answer is lost")

// some has clients make calls, three at a time; every few calls all answers of an outage are lost.
func (c *counterRun) some(calls int) {
	for n := range calls {
		lost := n%20 < 3 && c.rng.IntN(2) == 0
		c.now += time.Duration(c.rng.IntN(10))
		begin, end := c.now-time.Duration(c.rng.IntN(20)), c.now+time.Duration(c.rng.IntN(20))
		size := 2 + c.rng.Int64N(9)
		if lost {
			c.ops.Advance(max(begin, 0), end, size, leaf.Range{}, errLost)
			switch c.rng.IntN(3) {
			case 0:
				c.at += size
			case 1:
				c.late = append(c.late, size)
			}
			continue
		}
		if len(c.late) > 0 && c.rng.IntN(10) == 0 {
			c.at, c.late = c.at+c.late[0], c.late[1:]
		}
		got := leaf.Range{Start: c.at, End: c.at + size}
		c.at = got.End
		c.ops.Advance(max(begin, 0), end, size, got, nil)
		if c.rng.IntN(3) == 0 {
			back := leaf.Range{Start: got.Start + 1, End: got.End}
			var err error
			if c.rng.IntN(4) == 0 {
				err = errLost
			}
			if err == nil || c.rng.IntN(2) == 0 {
				c.at = back.Start
			}
			c.now = end + 1
			c.ops.GiveBack(c.now, c.now+5, back, err)
			c.now += 5
		}
	}
}

// Long histories with many lost answers are decided, and in order.
func TestSearchFinds(t *testing.T) {
	for seed := range uint64(300) {
		c := counterRun{rng: rand.New(rand.NewPCG(seed, 0)), at: 1}
		c.some(500)
		if err := c.ops.CheckCounter(1); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// Porcupine and the search agree, also on histories with a wrong answer.
func TestSearchAgrees(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(1500) {
		c := counterRun{rng: rand.New(rand.NewPCG(seed, 1)), at: 1}
		c.some(14)
		all := c.ops.proven()
		if seed%3 > 0 { // a wrong answer
			i := c.rng.IntN(len(all))
			if a, ok := all[i].Input.(advance); ok && !a.unknown {
				by := c.rng.Int64N(9) - 4
				a.got.Start, a.got.End = a.got.Start+by, a.got.End+by
				all[i].Input = a
			}
		}
		want, _, _ := byPorcupine(int64(1), all, counterStep, time.Minute)
		got, decided := newSearch(all, counterStep, counterReach).run(int64(1))
		if found[got]++; !decided || got != (want == porcupine.Ok) {
			t.Fatalf("seed %d: found an order: %v, decided: %v, porcupine: %v", seed, got, decided, want)
		}
	}
	if found[true] < 300 || found[false] < 300 {
		t.Errorf("with an order, and without: %v", found)
	}
}

// The same for cells.
func TestSearchAgreesOnCells(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var o Ops
		value, now := "", time.Duration(0)
		for i := range 12 {
			now += time.Duration(rng.IntN(10))
			begin, end := max(0, now-time.Duration(rng.IntN(15))), now+time.Duration(rng.IntN(15))
			switch next := strconv.Itoa(i); rng.IntN(5) {
			case 0:
				o.Swap(begin, end, value, next, Unknown)
				if rng.IntN(2) == 0 {
					value = next
				}
			case 1:
				o.Swap(begin, end, value, next, Done)
				value = next
			case 2:
				o.Swap(begin, end, strconv.Itoa(rng.IntN(i+1)), next, Conflict)
			default:
				o.Load(begin, end, value)
			}
		}
		if seed%2 == 0 {
			o.Load(now, now+9, strconv.Itoa(rng.IntN(12))) // a wrong answer, mostly
		}
		all := o.proven()
		want, _, _ := byPorcupine("", all, cellStep, time.Minute)
		got, decided := newSearch(all, cellStep, func(any, []any, []any) bool { return true }).run("")
		if found[got]++; !decided || got != (want == porcupine.Ok) {
			t.Fatalf("seed %d: found an order: %v, decided: %v, porcupine: %v", seed, got, decided, want)
		}
	}
	if found[true] < 300 || found[false] < 300 {
		t.Errorf("with an order, and without: %v", found)
	}
}

// An aborted search proves nothing.
func TestSearchUndecided(t *testing.T) {
	var o Ops
	sum := int64(1)
	for i := range 40 { // 2^40 sums
		n := int64(1)<<i + 1000
		sum += n
		o.Advance(0, 9, n, leaf.Range{}, errLost)
	}
	o.Advance(0, 9, 10, leaf.Range{Start: sum - 1, End: sum + 9}, nil)
	if err := o.CheckCounter(1); !errors.Is(err, ErrUndecided) {
		t.Errorf("got %v", err)
	}
}
