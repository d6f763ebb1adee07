package lab_test

import (
	"encoding/xml"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/e2e/lab"
)

// call is a receipt of the space "tag" from one call.
func call(server string, begin, end time.Duration, start, stop int64) lab.Receipt {
	return lab.Receipt{
		Range: leaf.Range{Start: start, End: stop}, Space: "tag", Server: server, Client: "c",
		Begin: begin, End: end, ClockBegin: begin.Milliseconds(), ClockEnd: end.Milliseconds(),
	}
}

func unordered(r lab.Receipt) lab.Receipt {
	r.Unordered = true
	return r
}

func history(receipts ...lab.Receipt) *lab.History {
	h := new(lab.History)
	for _, r := range receipts {
		h.Add(r, r.Range)
	}
	return h
}

// wantError fails the test unless err is as wanted: empty for no error, else a part of its text.
func wantError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

func TestUnique(t *testing.T) {
	other := call("a", 0, 1, 5, 6)
	other.Space = "other"
	for what, c := range map[string]struct {
		receipts []lab.Receipt
		want     string
	}{
		"neighbours":        {[]lab.Receipt{call("a", 0, 1, 0, 10), call("b", 0, 1, 10, 20)}, ""},
		"other space":       {[]lab.Receipt{call("a", 0, 1, 0, 10), other}, ""},
		"one ID":            {[]lab.Receipt{call("a", 0, 1, 0, 10), call("b", 2, 3, 9, 20)}, "1 duplicates: issued twice: [0, 10)"},
		"a large range":     {[]lab.Receipt{call("a", 0, 1, 0, 100), call("b", 0, 1, 10, 20), call("b", 0, 1, 30, 40)}, "20 duplicates"},
		"the same server":   {[]lab.Receipt{call("a", 0, 1, 7, 8), call("a", 0, 1, 7, 8)}, "1 duplicates"},
		"an empty range":    {[]lab.Receipt{call("a", 0, 1, 7, 7)}, "no range"},
		"a negative number": {[]lab.Receipt{call("a", 0, 1, -1, 7)}, "no range"},
	} {
		wantError(t, what, history(c.receipts...).Unique(), c.want)
	}
}

// A limit explains the IDs that a store lost and a server without memory issued again, and no
// other duplicates.
func TestExplain(t *testing.T) {
	limit := lab.Limit{
		Space: "tag", Lost: leaf.Range{Start: 100, End: 200}, Event: "the fail-over",
		Before: []string{"a.1", "b.1"}, Forgot: map[string]string{"a.2": "began with an emptied disk", "b.2": "began with an emptied disk"},
	}
	before := call("a.1", 0, 1, 100, 150)
	other := call("a.1", 0, 1, 100, 150)
	other.Space = "other"
	again := func(server string, start, end int64) lab.Receipt { return call(server, 2, 3, start, end) }
	for what, c := range map[string]struct {
		receipts []lab.Receipt
		causes   int64 // explained IDs
		want     string
	}{
		"no duplicate":                  {[]lab.Receipt{before, again("a.2", 150, 160)}, 0, ""},
		"forgotten":                     {[]lab.Receipt{before, again("a.2", 140, 160)}, 10, ""},
		"forgotten, larger":             {[]lab.Receipt{before, again("b.2", 90, 160)}, 50, ""},
		"taken from a stock afterwards": {[]lab.Receipt{call("a.1", 8, 9, 100, 150), again("a.2", 140, 160)}, 10, ""},
		"of one life":                   {[]lab.Receipt{before, again("a.1", 140, 160)}, 0, "issued twice"},
		"of one life without memory":    {[]lab.Receipt{again("a.2", 100, 110), again("a.2", 105, 110)}, 0, "issued twice"},
		"of two lives before":           {[]lab.Receipt{before, again("b.1", 140, 160)}, 0, "issued twice"},
		"with a memory":                 {[]lab.Receipt{before, again("a.3", 140, 160)}, 0, "issued twice"},
		"a third time":                  {[]lab.Receipt{before, again("a.2", 140, 150), again("b.2", 140, 150)}, 20, "issued twice"},
		"of an unknown server":          {[]lab.Receipt{before, again("", 140, 160)}, 0, "issued twice"},
		"not lost":                      {[]lab.Receipt{call("a.1", 0, 1, 190, 210), again("a.2", 195, 210)}, 0, "issued twice"},
		"of another tag":                {[]lab.Receipt{other, unlike(other, "a.2")}, 0, "issued twice"},
		"a negative number":             {[]lab.Receipt{call("a.1", 0, 1, -1, 7)}, 0, "no range"},
	} {
		causes, twice, err := history(c.receipts...).Explain(limit)
		wantError(t, what, err, c.want)
		var ids int64
		for _, cause := range causes {
			if ids += cause.IDs; !strings.Contains(cause.Why, "the fail-over took the counter back from 200 to 100; "+cause.Second+" began with an emptied disk") {
				t.Errorf("%s: %+v", what, cause)
			}
		}
		if ids != c.causes || (twice > 0) != (c.want == "issued twice") {
			t.Errorf("%s: %d IDs are explained, %d duplicates", what, ids, twice)
		}
	}
}

// unlike returns a receipt of another server.
func unlike(r lab.Receipt, server string) lab.Receipt {
	r.Server = server
	return r
}

// An answer with another number of IDs counts for any IDs.
func TestFits(t *testing.T) {
	h := history(call("a", 0, 1, 0, 10))
	wantError(t, "all fit", h.Fits(), "")
	h.Wrong("c", errors.New("9 instead of 10"))
	wantError(t, "one does not", h.Fits(), "1 answers do not fit their request: wrong answer: c: 9 instead of 10")
}

// The calls of a pipeline count one by one.
func TestPipelineCounts(t *testing.T) {
	pipeline := call("a", 0, 1, 0, 10)
	pipeline.Calls = 10
	h := history(pipeline, call("a", 2, 3, 10, 20))
	h.Fail(lab.Failure{Client: "c", Calls: 5})
	if r := h.Result(0, 1); r.Answered != 11 || r.Calls != 16 || r.Failed != 5 || r.Ranges != 2 || r.Clients != 1 || r.IDs != 20 {
		t.Errorf("%+v", r)
	}
}

// The ranges that one call brought of a second server are compared, and are no second call.
func TestExtendedCall(t *testing.T) {
	h := history(call("a", 0, 1, 0, 10))
	h.Extend(call("b", 0, 1, 0, 0), leaf.Range{Start: 9, End: 20}, leaf.Range{Start: 30, End: 31})
	if r := h.Result(0, 1); r.Answered != 1 || r.Ranges != 3 || r.IDs != 22 {
		t.Errorf("%+v", r)
	}
	wantError(t, "an ID of both", h.Unique(), "1 duplicates")
}

func TestAbove(t *testing.T) {
	for what, c := range map[string]struct {
		receipt lab.Receipt
		want    string
	}{
		"above":             {call("a", 6, 7, 100, 110), ""},
		"in part below":     {call("a", 6, 7, 99, 110), "issued below 100"},
		"began before":      {call("a", 4, 7, 50, 60), ""},
		"by another server": {call("b", 6, 7, 50, 60), ""},
	} {
		wantError(t, what, history(c.receipt).Above("tag", "a", 5, 100), c.want)
	}
}

func TestOrdered(t *testing.T) {
	for what, c := range map[string]struct {
		receipts []lab.Receipt
		want     string
	}{
		"ascending":           {[]lab.Receipt{call("a", 0, 1, 0, 10), call("a", 2, 3, 10, 20)}, ""},
		"at the same time":    {[]lab.Receipt{call("a", 0, 5, 10, 20), call("a", 1, 2, 0, 10)}, ""},
		"of no order":         {[]lab.Receipt{call("a", 0, 1, 10, 20), unordered(call("a", 2, 3, 0, 10))}, ""},
		"no server":           {[]lab.Receipt{call("", 0, 1, 10, 20), call("", 2, 3, 0, 10)}, ""},
		"another server":      {[]lab.Receipt{call("a", 0, 1, 10, 20), call("b", 2, 3, 0, 10)}, ""},
		"descending":          {[]lab.Receipt{call("a", 0, 1, 10, 20), call("a", 2, 3, 0, 10)}, "a answers out of order"},
		"below an older call": {[]lab.Receipt{call("a", 0, 1, 50, 60), call("a", 0, 2, 0, 10), call("a", 3, 4, 20, 30)}, "[20, 30)"},
	} {
		wantError(t, what, history(c.receipts...).Ordered(), c.want)
	}
}

func TestWithin(t *testing.T) {
	granted := map[string][]leaf.Range{"a": {{Start: 10, End: 20}, {Start: 0, End: 10}, {Start: 30, End: 40}}, "b": {{Start: 20, End: 30}}}
	for what, c := range map[string]struct {
		receipt lab.Receipt
		want    string
	}{
		"inside":                {call("a", 0, 1, 12, 20), ""},
		"over two that touch":   {call("a", 0, 1, 5, 15), ""},
		"over a gap":            {call("a", 0, 1, 15, 35), "never granted"},
		"granted to another":    {call("a", 0, 1, 25, 26), "never granted"},
		"beyond all":            {call("b", 0, 1, 90, 91), "never granted"},
		"to an unknown server":  {call("c", 0, 1, 5, 6), "never granted"},
		"begins below a grant":  {call("b", 0, 1, 19, 21), "never granted"},
		"the whole of a grant":  {call("b", 0, 1, 20, 30), ""},
		"ends one beyond a gap": {call("a", 0, 1, 30, 41), "never granted"},
	} {
		wantError(t, what, history(c.receipt).Within("tag", granted), c.want)
	}
}

func TestTimely(t *testing.T) {
	bound := lab.TimeBound{Ticks: func(id int64) (int64, int64) { return id, id + 1 }, Behind: 10, Ahead: 20}
	for what, c := range map[string]struct {
		receipt lab.Receipt
		want    string
	}{
		"by the clock": {call("a", 100*time.Millisecond, 100*time.Millisecond, 100, 101), ""},
		"just ahead":   {call("a", 100*time.Millisecond, 105*time.Millisecond, 110, 126), ""},
		"far ahead":    {call("a", 100*time.Millisecond, 105*time.Millisecond, 110, 127), "ahead of the clock"},
		"just behind":  {call("a", 100*time.Millisecond, 105*time.Millisecond, 89, 90), ""},
		"far behind":   {call("a", 100*time.Millisecond, 105*time.Millisecond, 88, 100), "behind the clock"},
	} {
		wantError(t, what, history(c.receipt).Timely("tag", bound), c.want)
	}
}

func TestSilence(t *testing.T) {
	h := history(call("a", 0, 2*time.Second, 0, 10), call("b", 2*time.Second, 7*time.Second, 10, 20))
	h.Fail(lab.Failure{Client: "c", Begin: 3 * time.Second, End: 4 * time.Second, Err: errors.New("no IDs")})
	wantError(t, "long enough", h.CheckSilence(0, 10*time.Second, 5*time.Second, "c"), "")
	wantError(t, "a gap", h.CheckSilence(0, 10*time.Second, 4*time.Second), "c received nothing for 5s from 2s on")
	wantError(t, "at the end", h.CheckSilence(0, 20*time.Second, 5*time.Second), "for 13s from 7s on")
	wantError(t, "a client without any", h.CheckSilence(0, 10*time.Second, 5*time.Second, "d"), "d received nothing")
	if ids, failed := h.Count(); ids != 20 || failed != 1 {
		t.Errorf("counted %d IDs and %d failures", ids, failed)
	}
	r := h.Result(0, 10*time.Second)
	if r.IDs != 20 || r.Calls != 3 || r.Failed != 1 || r.Silence != 5*time.Second || len(r.Served) != 1 {
		t.Errorf("%+v", r)
	}
	if c := r.Served[0]; c.Client != "c" || c.Availability < 0 || c.Availability > 0.001 {
		t.Errorf("silent for 2 s, 5 s and 3 s of 10 s: %+v", c)
	}
	if c := h.Result(6*time.Second, 8*time.Second).Served[0]; c.Availability < 0.999 {
		t.Errorf("silent for a second at most: %+v", c)
	}
}

// Only chosen receipts count.
func TestDuplicates(t *testing.T) {
	h := history(call("a", 0, 1, 0, 10), call("b", 0, 1, 5, 10))
	other := call("a", 0, 1, 0, 10)
	other.Space = "other"
	h.Add(other, other.Range)
	for what, c := range map[string]struct {
		keep func(*lab.Receipt) bool
		want int64
	}{
		"all":   {nil, 5},
		"tag":   {func(r *lab.Receipt) bool { return r.Space == "tag" }, 5},
		"other": {func(r *lab.Receipt) bool { return r.Space == "other" }, 0},
	} {
		if n, err := h.Duplicates(c.keep); n != c.want || (err != nil) != (n > 0) {
			t.Errorf("%s: %d duplicates, %v", what, n, err)
		}
	}
}

func TestLoss(t *testing.T) {
	h := history(call("a", 0, 1, 0, 10))
	granted, returned := []leaf.Range{{Start: 0, End: 100}}, []leaf.Range{{Start: 50, End: 100}}
	for what, c := range map[string]struct {
		life lab.Life
		want string
	}{
		"within the budget": {lab.Life{Crashed: true, Budget: 90, Granted: granted}, ""},
		"beyond it":         {lab.Life{Crashed: true, Budget: 89, Granted: granted}, "the crash of a cost 90 IDs"},
		"by its own count":  {lab.Life{Crashed: true, Budget: 79, Granted: granted, Issued: 20}, "cost 80 IDs"},
		"given back":        {lab.Life{Crashed: true, Budget: 40, Granted: granted, Returned: returned}, ""},
		"no crash":          {lab.Life{Budget: 0, Granted: granted}, ""},
	} {
		c.life.Server = "a"
		wantError(t, what, h.CheckLoss("tag", c.life), c.want)
	}
}

var errLost = errors.New("the answer was lost")

// A counter is a list of calls: each is an advance of 10 that got a range, or a
// give-back of it.
func TestCheckCounter(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the pictures of the violations
	r := func(start, end int64) leaf.Range { return leaf.Range{Start: start, End: end} }
	for what, c := range map[string]struct {
		calls func(o *lab.Ops)
		want  string
	}{
		"in order":       {func(o *lab.Ops) { o.Advance(0, 1, 10, r(1, 11), nil); o.Advance(2, 3, 10, r(11, 21), nil) }, ""},
		"at once":        {func(o *lab.Ops) { o.Advance(0, 5, 10, r(11, 21), nil); o.Advance(0, 5, 10, r(1, 11), nil) }, ""},
		"an answer lost": {func(o *lab.Ops) { o.Advance(0, 1, 10, r(0, 0), errLost); o.Advance(2, 3, 10, r(11, 21), nil) }, ""},
		"never arrived":  {func(o *lab.Ops) { o.Advance(0, 1, 10, r(0, 0), errLost); o.Advance(2, 3, 10, r(1, 11), nil) }, ""},
		"given back": {func(o *lab.Ops) {
			o.Advance(0, 1, 10, r(1, 11), nil)
			o.GiveBack(2, 3, r(5, 11), nil)
			o.Advance(4, 5, 10, r(5, 15), nil)
		}, ""},
		"maybe given back": {func(o *lab.Ops) {
			o.Advance(0, 1, 10, r(1, 11), nil)
			o.GiveBack(2, 3, r(5, 11), errLost)
			o.Advance(4, 5, 10, r(5, 15), nil)
		}, ""},
		"twice":    {func(o *lab.Ops) { o.Advance(0, 1, 10, r(1, 11), nil); o.Advance(2, 3, 10, r(1, 11), nil) }, "no order of the 2 calls"},
		"too late": {func(o *lab.Ops) { o.Advance(0, 1, 10, r(11, 21), nil); o.Advance(2, 3, 10, r(1, 11), nil) }, "no order"},
		"a gap":    {func(o *lab.Ops) { o.Advance(0, 1, 10, r(1, 11), nil); o.Advance(2, 3, 10, r(21, 31), nil) }, "no order"},
		"not at the end": {func(o *lab.Ops) {
			o.Advance(0, 1, 10, r(1, 11), nil)
			o.Advance(2, 3, 10, r(11, 21), nil)
			o.GiveBack(4, 5, r(5, 11), nil)
		}, "no order"},
	} {
		var o lab.Ops
		c.calls(&o)
		wantError(t, what, o.CheckCounter(1), c.want)
	}
}

func TestCheckCell(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the pictures of the violations
	for what, c := range map[string]struct {
		calls func(o *lab.Ops)
		want  string
	}{
		"swapped": {func(o *lab.Ops) { o.Swap(0, 1, "", "a", lab.Done); o.Load(2, 3, "a") }, ""},
		"refused": {func(o *lab.Ops) {
			o.Swap(0, 1, "", "a", lab.Done)
			o.Swap(2, 3, "", "b", lab.Conflict)
			o.Load(4, 5, "a")
		}, ""},
		"late": {func(o *lab.Ops) { o.Swap(0, 1, "", "a", lab.Unknown); o.Load(2, 3, ""); o.Load(4, 5, "a") }, ""},
		"read, and lost": {func(o *lab.Ops) {
			o.Swap(0, 1, "", "a", lab.Unknown)
			o.Load(2, 3, "a")
			o.Swap(2, 3, "", "b", lab.Conflict)
			o.Load(4, 5, "")
		}, ""},
		"both win":        {func(o *lab.Ops) { o.Swap(0, 9, "", "a", lab.Done); o.Swap(0, 9, "", "b", lab.Done) }, "no order"},
		"a stale read":    {func(o *lab.Ops) { o.Swap(0, 1, "", "a", lab.Done); o.Load(2, 3, "") }, "no order"},
		"refused for all": {func(o *lab.Ops) { o.Swap(0, 1, "", "a", lab.Conflict) }, "no order"},
	} {
		var o lab.Ops
		c.calls(&o)
		wantError(t, what, o.CheckCell(""), c.want)
	}
}

func TestPicture(t *testing.T) {
	h := history(call("a", 0, time.Second, 0, 10))
	h.Fail(lab.Failure{Client: "c", End: 2 * time.Second})
	got := h.Picture("<b>", []lab.Event{
		{On: "s1", Name: "a & b", Begin: time.Second, End: 2 * time.Second},
		{Name: "a & b", Begin: 2 * time.Second, End: 3 * time.Second},
	}, 4*time.Second)
	for want, times := range map[string]int{
		"&lt;b&gt;": 1, ">a &amp; b</text>": 1, ">s1</text>": 1, // one line for both
		`x="465" y="302" width="175"`: 1, `x="640" y="302" width="175"`: 1,
		"465,40": 1, "640,40": 1, // one call each: the most
		"465,198": 2, // 1 s, median and longest: four fifths of 180 to 270
		"</svg>":  1,
	} {
		if strings.Count(got, want) != times {
			t.Errorf("%q is not %d times in\n%s", want, times, got)
		}
	}
	if err := xml.Unmarshal([]byte(got), new(any)); err != nil {
		t.Error(err)
	}
}
