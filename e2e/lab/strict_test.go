package lab

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
)

func TestStrict(t *testing.T) {
	at := func(begin, end time.Duration, start, stop int64) Receipt {
		return Receipt{Space: "order", Begin: begin, End: end, Range: leaf.Range{Start: start, End: stop}}
	}
	for name, c := range map[string]struct {
		receipts []Receipt
		ok       bool
	}{
		"none":                       {nil, true},
		"in order":                   {[]Receipt{at(0, 1, 1, 2), at(2, 3, 2, 5)}, true},
		"a gap":                      {[]Receipt{at(0, 1, 1, 2), at(2, 3, 90, 95)}, true},
		"decrease":                   {[]Receipt{at(0, 1, 2, 3), at(2, 3, 1, 2)}, false},
		"overlapping calls":          {[]Receipt{at(0, 2, 2, 3), at(2, 3, 1, 2)}, true},
		"decrease far back":          {[]Receipt{at(0, 1, 9, 10), at(0, 9, 5, 6), at(0, 9, 6, 7), at(2, 9, 1, 2)}, false},
		"twice":                      {[]Receipt{at(0, 3, 2, 5), at(0, 3, 4, 6)}, false},
		"inside a longer range":      {[]Receipt{at(0, 3, 2, 9), at(0, 3, 4, 5)}, false},
		"another space":              {[]Receipt{at(0, 1, 2, 3), {Space: "other", Begin: 2, End: 3, Range: leaf.Range{Start: 1, End: 2}}}, true},
		"between two of one call":    {[]Receipt{at(0, 9, 1, 2), at(0, 9, 5, 6), at(3, 4, 3, 4)}, true},
		"a long call, then decrease": {[]Receipt{at(0, 9, 1, 2), at(1, 2, 7, 8), at(3, 4, 6, 7)}, false},
	} {
		var h History
		for _, r := range c.receipts {
			h.Add(r, r.Range)
		}
		if err := h.Strict("order"); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.receipts) == 0 {
			continue
		}
		if seen, err := h.StrictPieces("order", 1, 10); (err == nil) != c.ok || seen != len(h.sorted(byBegin, of("order"))) {
			t.Errorf("%s, by porcupine: %d seen, %v", name, seen, err)
		}
	}
}

// Porcupine and the check agree on random histories.
func TestStrictAgrees(t *testing.T) {
	found := map[bool]int{}
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var h History
		next := int64(1)
		for now := range time.Duration(12) {
			next += rng.Int64N(3)
			r := Receipt{Space: "order", Begin: now - time.Duration(rng.IntN(4)), End: now + time.Duration(rng.IntN(4))}
			got := leaf.Range{Start: next, End: next + 1 + rng.Int64N(3)}
			next = got.End
			if rng.IntN(20) == 0 { // a wrong answer
				got.Start, got.End = got.Start-3, got.End-3
			}
			if got.Start > 0 {
				h.Add(r, got)
			}
		}
		err := h.Strict("order")
		_, by := h.StrictPieces("order", 1, 100)
		if (err == nil) != (by == nil) {
			t.Fatalf("seed %d: %v, by porcupine: %v", seed, err, by)
		}
		found[err == nil]++
	}
	if found[true] < 500 || found[false] < 500 {
		t.Errorf("in order, and not: %v", found)
	}
}

func TestGapless(t *testing.T) {
	for want, ranges := range map[string][]leaf.Range{
		"":           {{Start: 3, End: 5}, {Start: 1, End: 3}, {Start: 5, End: 6}},
		"[3, 5) of ": {{Start: 1, End: 3}, {Start: 5, End: 6}},
		"[1, 2) of ": {{Start: 2, End: 3}},
	} {
		var h History
		h.Add(Receipt{Space: "day"}, ranges...)
		h.Add(Receipt{Space: "other"}, leaf.Range{Start: 3, End: 5})
		if err := h.Gapless("day", 1); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", ranges, err, want)
		}
	}
}
