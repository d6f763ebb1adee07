package segment_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// A ledger is a store that notes its grants and its give-backs. Between two grants another process
// may take IDs, and a grant may be smaller than the call.
type ledger struct {
	segment.Store
	rng      *rand.Rand
	most     int64 // of a grant; 0: any
	rivals   bool
	grants   []leaf.Range
	calls    int64
	returned []leaf.Range
}

func (l *ledger) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if l.rivals && l.rng.IntN(3) == 0 {
		if _, err := l.Store.Advance(ctx, tag, 1+l.rng.Int64N(50)); err != nil {
			return segment.Grant{}, err
		}
	}
	if l.most > 0 {
		n = min(n, l.most)
		if n == 0 {
			n = l.most
		}
	}
	g, err := l.Store.Advance(ctx, tag, n)
	l.calls++
	l.grants = append(l.grants, g.Range)
	return g, err
}

func (l *ledger) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] { return l.Store.Tags(ctx) }

func (l *ledger) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	l.returned = append(l.returned, leaf.Range{Start: start, End: last.Range.End})
	return l.Store.(segment.Returner).Return(ctx, tag, last, start)
}

// A model predicts a buffer: spans of granted IDs, issued from the first span on.
type model struct {
	t       *testing.T
	b       *segment.Buffer
	store   *ledger
	spans   []leaf.Range // the first may be empty: the buffer leaves it at the next call
	seen    int          // how many grants are in spans
	granted int64        // IDs
	issued  int64
	lost    int64
	floor   int64
	block   leaf.Range // of the cursor
	cursor  *segment.Cursor
	loan    segment.Grant
	lent    bool // the loan may come back
}

// update takes in the grants since the last call.
func (m *model) update() {
	synctest.Wait()
	for _, g := range m.store.grants[m.seen:] {
		m.granted += g.Len()
		above := leaf.Range{Start: max(g.Start, min(m.floor, g.End)), End: g.End}
		m.lost += g.Len() - above.Len()
		if !above.Empty() {
			m.spans = append(m.spans, above)
		}
	}
	m.seen = len(m.store.grants)
}

// pop removes n IDs off the front and returns them as few ranges.
func (m *model) pop(n int64) (got []leaf.Range) {
	for n > 0 {
		m.advance()
		r := m.spans[0]
		r.End = min(r.End, r.Start+n)
		n -= r.Len()
		m.spans[0].Start = r.End
		if last := len(got) - 1; last >= 0 && got[last].End == r.Start {
			got[last].End = r.End
		} else {
			got = append(got, r)
		}
	}
	m.issued += sum(got)
	return got
}

// advance leaves empty spans behind.
func (m *model) advance() {
	for len(m.spans) > 1 && m.spans[0].Empty() {
		m.spans = m.spans[1:]
	}
}

func sum(ranges []leaf.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}

func (m *model) take(n int) {
	got, err := m.b.Take(m.t.Context(), nil, n)
	m.update()
	if want := m.pop(int64(n)); err != nil || !slices.Equal(got, want) {
		m.t.Fatalf("took %v, %v, want %v", got, err, want)
	}
	m.lent = false
}

func (m *model) next() {
	id, err := m.b.Next(m.t.Context())
	m.update()
	if want := m.pop(1); err != nil || len(want) != 1 || id != want[0].Start {
		m.t.Fatalf("got %d, %v, want %v", id, err, want)
	}
	m.lent = false
}

// contiguous takes the first run of n IDs: those below it are not issued any more.
func (m *model) contiguous(n int64) {
	got, err := m.b.TakeContiguous(m.t.Context(), int(n))
	m.update()
	m.lent = false
	if m.store.most > 0 && m.store.rivals && errors.Is(err, leaf.ErrNotContiguous) {
		return
	}
	if m.spans[0].Len() < n {
		m.advance()
	}
	skipped, run := int64(0), leaf.Range{}
	for _, s := range m.spans {
		if run.Empty() || s.Start != run.End {
			skipped += run.Len()
			run = s
		} else {
			run.End = s.End
		}
		if run.Len() >= n {
			break
		}
	}
	if want := (leaf.Range{Start: run.Start, End: run.Start + n}); err != nil || got != want || run.Len() < n {
		m.t.Fatalf("got %v, %v, want %v of %v", got, err, want, m.spans)
	}
	m.pop(skipped)
	m.pop(n)
}

func (m *model) dropBelow(below int64) {
	got := m.b.DropBelow(below)
	m.floor = max(m.floor, below)
	want := int64(0)
	for i, s := range m.spans {
		above := leaf.Range{Start: max(s.Start, min(m.floor, s.End)), End: s.End}
		want += s.Len() - above.Len()
		m.spans[i] = above
	}
	for i := 1; i < len(m.spans); i++ {
		if m.spans[i].Empty() {
			m.spans = slices.Delete(m.spans, i, i+1)
			i--
		}
	}
	m.advance()
	m.lost += want
	if got != want {
		m.t.Fatalf("dropped %d below %d, want %d", got, below, want)
	}
	m.lent = false
}

func (m *model) cursorNext() {
	before := m.b.Stats().Issued
	id, err := m.cursor.Next(m.t.Context())
	if m.block.Empty() || m.block.Start < m.floor {
		m.update()
		m.advance()
		m.block = m.spans[0]
		m.block.End = min(m.block.End, m.block.Start+5)
		if m.b.Stats().Issued == before+1 { // it has waited, for a single one
			m.block.End = m.block.Start + 1
		}
		m.pop(m.block.Len())
		m.lent = false
	}
	if err != nil || id != m.block.Start {
		m.t.Fatalf("the cursor gave %d, %v, want the first of %v", id, err, m.block)
	}
	m.block.Start++
}

func (m *model) lend(n int64) {
	g, err := m.b.Advance(m.t.Context(), n, "")
	m.update()
	want := n
	if n == 0 {
		want = m.b.Stats().Step
	}
	m.advance()
	r := m.spans[0]
	r.End = min(r.End, r.Start+want)
	if err != nil || g.Range != r || g.Step != m.b.Stats().Step || g.Version == "" {
		m.t.Fatalf("lent %+v, %v, want %v", g, err, r)
	}
	m.spans[0].Start = r.End // it may be empty now: the loan may still go back there
	m.issued += r.Len()
	m.loan, m.lent = g, true
}

func (m *model) giveBack(start int64) {
	err := m.b.Return(m.t.Context(), m.loan, start)
	switch {
	case m.lent && start < m.loan.Range.End:
		if err != nil {
			m.t.Fatalf("%v does not go back to %d: %v", m.loan.Range, start, err)
		}
		m.issued -= m.loan.Range.End - start
		m.spans[0].Start = start
	case err == nil:
		m.t.Fatalf("%v went back to %d", m.loan.Range, start)
	}
	m.lent = m.lent && start >= m.loan.Range.End
}

// check compares the figures with those of the buffer.
func (m *model) check() {
	m.update()
	st, stock := m.b.Stats(), sum(m.spans)
	if st.Stock != stock || st.Issued != m.issued || st.Lost != m.lost || m.granted != stock+m.issued+m.lost {
		m.t.Fatalf("stock %d, issued %d, lost %d; want %d, %d, %d of %d", st.Stock, st.Issued, st.Lost, stock, m.issued, m.lost, m.granted)
	}
	if st.Refills != int64(len(m.store.grants)) || st.Calls != m.store.calls || st.Failures != 0 || st.Exhausted != 0 || st.Refilling {
		m.t.Fatalf("after %d grants: %+v", len(m.store.grants), st)
	}
	var have []leaf.Range
	for _, s := range st.Segments {
		if s.Next < s.Range.End {
			have = append(have, leaf.Range{Start: s.Next, End: s.Range.End})
		}
	}
	if want := slices.DeleteFunc(slices.Clone(m.spans), leaf.Range.Empty); !slices.Equal(have, want) {
		m.t.Fatalf("the buffer has %v, want %v", have, want)
	}
}

// stop closes the buffer: the last run of the stock goes back.
func (m *model) stop() {
	var run leaf.Range
	for _, s := range m.spans {
		if s.Empty() {
			continue
		}
		if run.Empty() || run.End != s.Start {
			run = s
		} else {
			run.End = s.End
		}
	}
	err := m.b.Close(m.t.Context())
	st, stock := m.b.Stats(), sum(m.spans)
	var want []leaf.Range
	if !run.Empty() {
		want = []leaf.Range{run}
	}
	if !slices.Equal(m.store.returned, want) {
		m.t.Fatalf("gave %v back, want %v", m.store.returned, want)
	}
	back := int64(0)
	if err == nil {
		back = run.Len()
	}
	if st.Stock != 0 || st.Issued != m.issued || st.Returned != back || st.Lost != m.lost+stock-back {
		m.t.Fatalf("closed with a stock of %d of which %d went back: %+v", stock, back, st)
	}
	if n := m.b.DropBelow(1 << 40); n != 0 {
		m.t.Errorf("a closed buffer dropped %d", n)
	}
	if _, err := m.cursor.Next(m.t.Context()); !errors.Is(err, leaf.ErrClosed) {
		m.t.Errorf("a cursor of a closed buffer: %v", err)
	}
	if err := errors.Join(m.b.Close(m.t.Context())); err != nil || len(m.store.returned) != len(want) {
		m.t.Errorf("closed again: %v and %v", err, m.store.returned)
	}
}

// A buffer issues the IDs of its grants in their order, each once, and counts each. Neither the
// calls and their order nor the size of the grants changes that.
func TestBufferAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			store := memory.New().Store()
			create(t, store, "order", rng.Int64N(1000), 20)
			l := &ledger{Store: store, rng: rng, rivals: seed%2 == 0}
			if seed%5 == 0 {
				l.most = 7
			}
			opts := &segment.Options{Policy: segment.Policy(seed % 3 / 2), Wait: time.Hour, MaxStock: []int64{0, 100}[seed%4/3]}
			b := segment.NewBuffer(l, "order", opts)
			m := &model{t: t, b: b, store: l, cursor: b.Cursor(5), spans: make([]leaf.Range, 1)}
			for range 150 {
				switch rng.IntN(10) {
				case 0, 1:
					m.take(1 + rng.IntN(60))
				case 2:
					m.contiguous(1 + rng.Int64N(40))
				case 3:
					if rng.IntN(3) == 0 && len(m.spans) > 0 {
						m.dropBelow(m.spans[rng.IntN(len(m.spans))].Start + rng.Int64N(40) - 5)
					}
				case 4, 5:
					m.cursorNext()
				case 6:
					m.lend(rng.Int64N(30))
				case 7:
					if m.loan.Version != "" {
						m.giveBack(m.loan.Range.Start + rng.Int64N(m.loan.Range.Len()+1))
					}
				case 8:
					time.Sleep(time.Duration(rng.Int64N(int64(time.Minute))))
				default:
					m.next()
				}
				m.check()
			}
			m.stop()
		})
	}
}
