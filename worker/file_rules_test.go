package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
)

// A state file is believed if it has a whole lease of its registry.
func TestRestoreState(t *testing.T) {
	whole := savedLease{Registry: "r", Instance: Instance{1}, Term: 2, Horizon: milliTime{now}, Mark: milliTime{now}}
	text := func(change func(l *savedLease)) string {
		l := whole
		change(&l)
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, tt := range []struct {
		name, content string // "": empty
		notice        string
	}{
		{"nothing", "", ""},
		{"a lease", text(func(*savedLease) {}), ""},
		{"another registry's", text(func(l *savedLease) { l.Registry = "s" }), "another registry, s"},
		{"without an instance", text(func(l *savedLease) { l.Instance = Instance{} }), "damaged"},
		{"a mark above the horizon", text(func(l *savedLease) { l.Mark.Time = now.Add(time.Millisecond) }), "damaged"},
		{"no JSON", "{", "damaged"},
	} {
		f := &memoryFile{}
		s := NewStateFile(f, "id")
		if tt.content != "" {
			if err := s.slots.write([]byte(tt.content)); err != nil {
				t.Fatal(err)
			}
		}
		lease, notice, err := s.restore("r")
		if err != nil || (notice != nil) != (tt.notice != "") || notice != nil && !strings.Contains(notice.Error(), tt.notice) {
			t.Errorf("%s: %v, %v", tt.name, notice, err)
		}
		if (lease != nil) != (tt.notice == "" && tt.content != "") || lease != nil && (lease.Term != 2 || lease.Instance != whole.Instance) {
			t.Errorf("%s: %+v", tt.name, lease)
		}
		if _, _, err := s.restore("r"); err == nil {
			t.Errorf("%s: two keepers have the file", tt.name)
		}
	}
}

// A file that cannot be used leaves its StateFile to the next keeper.
func TestRestoreStateFails(t *testing.T) {
	f := &memoryFile{content: []byte("damaged"), err: errDown}
	s := NewStateFile(f, "id")
	for range 2 {
		if _, _, err := s.restore("r"); !errors.Is(err, errDown) {
			t.Errorf("a file that cannot be erased: %v", err)
		}
	}
	f.err = nil
	if lease, notice, err := s.restore("r"); lease != nil || !errors.Is(notice, errDamaged) || err != nil {
		t.Errorf("once it can: %v, %v, %v", lease, notice, err)
	}
	if slices.ContainsFunc(f.content, func(b byte) bool { return b != 0 }) {
		t.Error("the file was not erased")
	}
	s = NewStateFile(unreadable{}, "id")
	if _, _, err := s.restore("r"); !errors.Is(err, errDown) {
		t.Errorf("an unreadable file: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed with %v", err)
	}
	s.closer = closerFunc(func() error { return errDown })
	if err := s.Close(); !errors.Is(err, errDown) {
		t.Errorf("closed with %v", err)
	}
}

type unreadable struct{ File }

func (unreadable) ReadAt([]byte, int64) (int, error) { return 0, errDown }

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// A slot is believed if all of it is as it was written.
func TestParseSlot(t *testing.T) {
	s := &slots{size: 64, version: 2}
	sum := checksum(7, []byte("text"))
	line := func(version, number, length int, sum uint32) string {
		return fmt.Sprintf("%s %d %d %d %08x\ntext", slotMagic, version, number, length, sum)
	}
	for _, tt := range []struct {
		name, slot string
		number     uint64
		text       string
		err        error
	}{
		{"whole", line(2, 7, 4, sum), 7, "text", nil},
		{"an older format", line(1, 7, 4, sum), 7, "text", nil},
		{"a newer format", line(3, 7, 4, sum), 0, "", ErrNewer},
		{"a newer format, otherwise unknown", slotMagic + " 3 colour", 0, "", ErrNewer},
		{"zeros", "\x00\x00\x00", 0, "", nil},
		{"nothing", "", 0, "", nil},
		{"another file", "hello\x00", 0, "", errDamaged},
		{"number 0", line(2, 0, 4, checksum(0, []byte("text"))), 0, "", errDamaged},
		{"less text", line(2, 7, 3, sum), 0, "", errDamaged},
		{"more text than there is", line(2, 7, 5, sum), 0, "", errDamaged},
		{"negative", line(2, 7, -1, sum), 0, "", errDamaged},
		{"another sum", line(2, 7, 4, sum+1), 0, "", errDamaged},
		{"another number's sum", line(2, 8, 4, sum), 0, "", errDamaged},
	} {
		number, text, err := s.parse([]byte(tt.slot))
		if number != tt.number || string(text) != tt.text || !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %d %q, %v", tt.name, number, text, err)
		}
	}
	room := int(s.size) - len(fmt.Sprintf("%s 2 7 40 12345678\n", slotMagic))
	for n, fits := range map[int]bool{room: true, room + 1: false} {
		if slot, err := s.format(7, make([]byte, n)); (err == nil) != fits || fits && len(slot) != int(s.size) {
			t.Errorf("%d bytes of text: a slot of %d bytes, %v", n, len(slot), err)
		}
	}
	if err := s.write(make([]byte, 100)); err == nil {
		t.Error("wrote more than a slot holds")
	}
}

// The writes alternate between two slots. A failed one is repeated at its place.
func TestSlotsAlternate(t *testing.T) {
	f := &memoryFile{}
	s := &slots{file: f, size: 128, version: 2}
	if text, err := s.read(); text != nil || err != nil || s.next != 1 {
		t.Fatalf("an empty file holds %q, %v; next %d", text, err, s.next)
	}
	for i, next := range []uint64{3, 4, 4, 5} {
		if f.err = nil; i == 2 {
			f.err = errDown
		}
		if err := s.write([]byte{'a' + byte(i)}); !errors.Is(err, f.err) || s.next != next {
			t.Errorf("write %d: %v, next %d", i, err, s.next)
		}
	}
	again := &slots{file: f, size: 128, version: 2}
	if text, err := again.read(); string(text) != "d" || err != nil || again.next != 5 || again.found != 2 {
		t.Errorf("the file holds %q, %v; next %d, format %d", text, err, again.next, again.found)
	}
	if !strings.Contains(string(f.content[:128]), "\nd") || !strings.Contains(string(f.content[128:]), "\nb") {
		t.Errorf("the slots hold %q", f.content)
	}
}

// A static registry has one cell, and writes it through.
func TestStaticCell(t *testing.T) {
	f := &memoryFile{}
	s, err := OpenStatic(f, 0, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := s.Load(t.Context(), 0)
	if until := time.Until(first.Horizon); until > time.Hour+time.Millisecond || until < time.Hour-time.Minute || first.Held() {
		t.Errorf("an empty file has %+v", first)
	}
	held := Record{Instance: Instance{1}, Term: 1, Horizon: now}
	for what, swap := range map[string][2]Record{"from another": {{Worker: 8}, held}, "to another": {first, {Worker: 8, Term: 1}}} {
		if _, err := s.Swap(t.Context(), swap[0], swap[1]); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("a swap %s cell: %v", what, err)
		}
	}
	f.err = errDown
	if _, err := s.Swap(t.Context(), first, held); !errors.Is(err, errDown) {
		t.Errorf("on a broken disk: %v", err)
	}
	if r, _ := s.Load(t.Context(), 0); !r.Equal(first) {
		t.Errorf("after that it has %+v", r)
	}
	f.err = nil
	if got, err := s.Swap(t.Context(), first, held); err != nil || !got.Equal(held) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Swap(t.Context(), held, Record{Horizon: time.Unix(-1, 0)}); err == nil {
		t.Error("wrote a horizon before 1970")
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 || !list[0].Equal(held) {
		t.Errorf("lists %+v, %v", list, err)
	}
	if r, err := s.Load(t.Context(), 8); err != nil || !r.Equal(Record{Worker: 8}) {
		t.Errorf("another cell has %+v, %v", r, err)
	}
	for limit, ok := range map[int64]bool{0: true, -1: false} {
		if _, err := s.Assign(t.Context(), limit); (err == nil) != ok {
			t.Errorf("assigned with a limit of %d: %v", limit, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, loadErr := s.Load(ended, 0)
	_, swapErr := s.Swap(ended, held, first)
	_, listErr := s.List(ended)
	_, clockErr := s.Clock(ended)
	for call, err := range map[string]error{"Load": loadErr, "Swap": swapErr, "List": listErr, "Clock": clockErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s of a caller who has gone: %v", call, err)
		}
	}
	if again, err := OpenStatic(f, 0, time.Hour); err != nil || !again.record.Equal(held) {
		t.Errorf("opened again: %v", err)
	}
	if _, err := OpenStatic(f, -1, 0); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("worker ID -1: %v", err)
	}
	if _, err := OpenStatic(unreadable{}, 0, 0); !errors.Is(err, errDown) {
		t.Errorf("an unreadable file: %v", err)
	}
	bad := &slots{file: f, size: recordSlot, version: staticVersion, next: 9}
	if err := errors.Join(bad.write([]byte("{")), bad.write([]byte("{"))); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenStatic(f, 0, 0); err == nil {
		t.Error("opened what is no record")
	}
}

// A server's command reads the files of servers that may run.
func TestInspectFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if _, _, err := Inspect().ReadState(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	s, err := OpenStateFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if r, registry, err := Inspect().ReadState(path); err != nil || !r.IsZero() || registry != "" {
		t.Errorf("an empty file: %+v, %q, %v", r, registry, err)
	}
	s.registry = "r"
	lease := savedLease{Worker: 3, Instance: Instance{1}, Term: 5, Horizon: milliTime{now}, Mark: milliTime{now}, Layouts: bits(2)}
	if err := s.save(lease); err != nil {
		t.Fatal(err)
	}
	want := Record{Worker: 3, Instance: Instance{1}, Term: 5, Horizon: now, Layouts: bits(2)}
	if r, registry, err := Inspect().ReadState(path); err != nil || !r.Equal(want) || registry != "r" {
		t.Errorf("got %+v of %q, %v", r, registry, err)
	}
	if err := s.slots.write([]byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Inspect().ReadState(path); err == nil {
		t.Error("read what is no lease")
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Inspect().ReadState(path); !errors.Is(err, errDamaged) {
		t.Errorf("a damaged file: %v", err)
	}
	if _, err := Inspect().ReadStatic(path, 0); !errors.Is(err, errDamaged) {
		t.Errorf("a damaged record: %v", err)
	}
	if err := Inspect().CheckLayouts(bits(2), map[int64]Record{0: {Layouts: bits(3)}}); !errors.As(err, new(*LayoutError)) {
		t.Errorf("other layouts: %v", err)
	}
}

// A registry holds these records instead of its backup.
func TestRestoredRecords(t *testing.T) {
	const pool = int64(2) << poolShift
	definition := Record{Worker: pool | poolDefinition, Instance: Instance{9}, Term: 1, Horizon: now, Owner: "o", Pool: smallPool}
	held := Record{Worker: pool | 1, Version: "v", Instance: Instance{1}, Term: 4, Horizon: now.Add(time.Hour), Floor: now, Owner: "o", Seen: now, Offset: 1,
		Incarnation: "a", Since: now, ClaimDelay: time.Minute, Layouts: bits(3)}
	for _, tt := range []struct {
		name    string
		seen    time.Duration // before now
		free    bool
		bits    int
		floor   time.Duration // rounded up
		wait    time.Duration
		records int
	}{
		{"the least", 0, false, 2, time.Hour, restoreWait, 5},
		{"a longer lease", time.Hour, false, 2, 2 * time.Hour, restoreWait, 5},
		{"one that was released", time.Hour, true, 2, restoreHorizon, restoreWait, 5},
		{"unseen", -1, false, 2, restoreHorizon, restoreWait, 5},
		{"the largest fenced pool", 0, false, maxFenceBits, time.Hour, restoreWait, 1 + 1<<maxFenceBits},
		{"a larger pool", 0, false, maxFenceBits + 1, time.Hour, smallPool.MaxTTL + restoreWait, 2},
	} {
		d, r := definition, held
		d.Pool.Layout.WorkerBits = tt.bits
		if r.Seen = now.Add(-tt.seen); tt.seen < 0 {
			r.Seen = time.Time{}
		}
		if tt.free {
			r.Instance = Instance{}
		}
		restored, wait := Restored([]Record{d, r}, now)
		if len(restored) != tt.records || wait != tt.wait {
			t.Errorf("%s: %d records, a wait of %v", tt.name, len(restored), wait)
		}
		floor := now.Add(tt.floor + time.Millisecond)
		if floor.Before(r.Horizon) {
			floor = r.Horizon
		}
		for i, got := range restored {
			want := Record{Worker: pool | int64(i), Term: 2, Horizon: now.Add(tt.floor + time.Millisecond)}
			switch got.Worker {
			case d.Worker:
				want = d
			case r.Worker:
				want = Record{Worker: r.Worker, Term: 5, Horizon: floor, ClaimDelay: time.Minute, Layouts: bits(3)}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: record %d: %s", tt.name, i, diff)
			}
		}
	}
}

// A record has the oldest format that holds it, and a broken text changes nothing.
func TestRecordFormats(t *testing.T) {
	for version, records := range map[int][]Record{
		1:             {{}, mine, {Owner: "o", Seen: now, Offset: 1, Layouts: bits(1)}},
		stampVersion:  {{Incarnation: "a"}, {Since: now}, {ClaimDelay: 1}},
		recordVersion: {{Floor: now}, {Pool: Pool{Name: "p"}}, {Pool: smallPool, Incarnation: "a"}},
	} {
		for _, r := range records {
			if got := r.version(); got != version {
				t.Errorf("%+v: version %d, want %d", r, got, version)
			}
		}
	}
	i := Instance{1}
	if err := i.UnmarshalText(nil); err != nil || !i.IsZero() {
		t.Errorf("the empty text is %v, %v", i, err)
	}
	limit := int64(math.MaxInt64 / time.Millisecond)
	for ms, ok := range map[int64]bool{limit: true, -limit: true, limit + 1: false, -limit - 1: false} {
		var d millis
		if err := json.Unmarshal(fmt.Append(nil, ms), &d); (err == nil) != ok || ok && time.Duration(d).Milliseconds() != ms {
			t.Errorf("%d ms: %v, %v", ms, d, err)
		}
	}
	var d millis
	if err := json.Unmarshal([]byte(`"1"`), &d); err == nil {
		t.Error("a text is a duration")
	}
}

// A lease without a registry has the caller's limit, or no limit.
func TestUnfenced(t *testing.T) {
	if l := Unfenced(3, now, time.Time{}); l.Worker() != 3 || l.Limit().UnixMilli() != math.MaxInt64 {
		t.Errorf("up to %v", l.Limit())
	}
	asked := &Lease{wake: make(chan struct{}, 1)}
	asked.limit.Store(now.UnixMilli())
	for i, want := range []int{0, 1, 1} { // the limit is enough, it is not, and somebody knows that already
		if asked.Need(now.Add(time.Duration(i) * time.Millisecond)); len(asked.wake) != want {
			t.Errorf("call %d: woken %d times", i, len(asked.wake))
		}
	}
	l := Unfenced(3, now, now.Add(time.Second))
	l.Need(now.Add(time.Hour))
	if !l.Limit().Equal(now.Add(time.Second)) || !l.Floor().Equal(now) {
		t.Errorf("from %v to %v", l.Floor(), l.Limit())
	}
}
