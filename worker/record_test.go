package worker_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/worker"
)

func TestRecordText(t *testing.T) {
	i := worker.Instance{0: 0xab, 15: 1}
	full := worker.Record{
		Worker: 7, Instance: i, Term: math.MaxInt64, Horizon: time.UnixMilli(1795260434883),
		Layouts: []worker.ServedLayout{
			{Name: "a<b", Epoch: -1, Tick: 1000, TimeBits: 28, WorkerBits: 22, SequenceBits: 13},
			{Name: "leaf", Epoch: 1288834974657, Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12},
		},
		Owner: `höst "1"`, Seen: time.UnixMilli(5), Offset: -3 * time.Millisecond,
	}
	const want = `{"v":1,"instance":"ab000000000000000000000000000001","term":9223372036854775807,"horizon":1795260434883,` +
		`"layouts":[{"name":"a<b","epoch":-1,"tick":1000,"time":28,"worker":22,"sequence":13},` +
		`{"name":"leaf","epoch":1288834974657,"tick":1,"time":41,"worker":10,"sequence":12}],"owner":"höst \"1\"","seen":5,"offset":-3}`
	text, err := full.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	stamped := full
	stamped.Layouts, stamped.Incarnation, stamped.Since, stamped.ClaimDelay = nil, "7/2", time.UnixMilli(4), 27*time.Second
	text, err = stamped.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"v":2,"instance":"ab000000000000000000000000000001","term":9223372036854775807,"horizon":1795260434883,` +
		`"owner":"höst \"1\"","seen":5,"offset":-3,"incarnation":"7/2","since":4,"claim_delay":27000}`; string(text) != want {
		t.Error(cmp.Diff(want, string(text)))
	}
	leased := worker.Record{Worker: 7, Floor: time.UnixMilli(8), Pool: worker.Pool{Name: "p", Layout: worker.ServedLayout{Tick: 1, TimeBits: 41}, MaxTTL: time.Minute, ClaimDelay: time.Hour}}
	text, err = leased.MarshalText()
	if want := `{"v":3,"instance":"","term":0,"horizon":0,"floor":8,"pool":{"name":"p","layout":{"name":"","epoch":0,"tick":1,"time":41,"worker":0,"sequence":0},"max_ttl":60000,"claim_delay":3600000}}`; err != nil || string(text) != want {
		t.Error(cmp.Diff(want, string(text)))
	}
	for _, r := range []worker.Record{full, stamped, leased, {Worker: 7}, {Worker: 7, Term: 3, Horizon: time.UnixMilli(9)}, {ClaimDelay: time.Millisecond, Worker: 7}} {
		text, err := r.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		got := worker.Record{Worker: 7}
		if err := got.UnmarshalText(text); err != nil || !got.Equal(r) {
			t.Errorf("%s became %+v, %v", text, got, err)
		}
	}
}

func TestRecordTextRefused(t *testing.T) {
	for _, text := range []string{
		"", "null", "7", "nonsense", `{"v":1,"term":1}x`, `{"v":0}`, `{}`, `{"v":1,"term":-1}`, `{"v":1,"horizon":-5}`,
		`{"v":1,"instance":"ab"}`, `{"v":1,"instance":"zz000000000000000000000000000001"}`, `{"v":1,"colour":"red"}`,
		`{"v":1,"offset":9223372036854775807}`,
	} {
		r := worker.Record{Worker: 7, Term: 4}
		if err := r.UnmarshalText([]byte(text)); err == nil || errors.Is(err, worker.ErrNewer) {
			t.Errorf("%q: got error %v", text, err)
		}
		if !r.Equal(worker.Record{Worker: 7, Term: 4}) {
			t.Errorf("%q changed the record", text)
		}
	}
	if text, err := (worker.Record{Horizon: time.Time{}.Add(time.Hour)}).MarshalText(); err == nil {
		t.Errorf("a horizon in the year 1 is written as %s", text)
	}
	var r worker.Record
	if err := r.UnmarshalText([]byte(`{"v":4,"colour":"red"}`)); !errors.Is(err, worker.ErrNewer) {
		t.Errorf("a newer format: %v", err)
	}
	if err := r.UnmarshalText([]byte(strings.Repeat("x", 1<<20))); err == nil || len(err.Error()) > 1000 {
		t.Error("the error of a long text is long")
	}
}

func TestRecordEqual(t *testing.T) {
	r := worker.Record{Worker: 1, Instance: worker.Instance{1}, Term: 2, Horizon: time.UnixMilli(3), Layouts: []worker.ServedLayout{{Name: "a"}}, Owner: "o", Seen: time.UnixMilli(4), Offset: 5, Incarnation: "i", Since: time.UnixMilli(6), ClaimDelay: 7, Floor: time.UnixMilli(8), Pool: worker.Pool{Name: "p"}}
	for field, change := range map[string]func(*worker.Record){
		"worker": func(r *worker.Record) { r.Worker++ }, "instance": func(r *worker.Record) { r.Instance[15]++ },
		"term": func(r *worker.Record) { r.Term++ }, "horizon": func(r *worker.Record) { r.Horizon = r.Horizon.Add(1) },
		"layouts": func(r *worker.Record) { r.Layouts = []worker.ServedLayout{{Name: "b"}} }, "owner": func(r *worker.Record) { r.Owner = "" },
		"seen": func(r *worker.Record) { r.Seen = r.Seen.Add(1) }, "offset": func(r *worker.Record) { r.Offset++ },
		"incarnation": func(r *worker.Record) { r.Incarnation = "" }, "since": func(r *worker.Record) { r.Since = r.Since.Add(1) },
		"claim delay": func(r *worker.Record) { r.ClaimDelay++ },
		"floor":       func(r *worker.Record) { r.Floor = time.Time{} }, "pool": func(r *worker.Record) { r.Pool.Layout.Tick++ },
	} {
		s := r
		change(&s)
		if r.Equal(s) || !s.Equal(s) {
			t.Errorf("records with another %s are equal", field)
		}
	}
	if r.IsZero() || !(worker.Record{Worker: 9}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

func FuzzRecordText(f *testing.F) {
	f.Add([]byte(`{"v":1,"instance":"ab000000000000000000000000000001","term":1,"horizon":5,"layouts":[{"name":"a"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r worker.Record
		if r.UnmarshalText(text) != nil {
			return
		}
		again, err := r.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var s worker.Record
		if err := s.UnmarshalText(again); err != nil || !sameButOrder(r, s) {
			t.Errorf("%q became %q: %v", text, again, err)
		}
	})
}

// sameButOrder compares records whose layouts need not have been sorted.
func sameButOrder(r, s worker.Record) bool {
	n := len(r.Layouts)
	r.Layouts, s.Layouts = nil, s.Layouts[:len(s.Layouts):len(s.Layouts)]
	same := len(s.Layouts) == n
	s.Layouts = nil
	return same && r.Equal(s)
}
