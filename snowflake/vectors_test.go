package snowflake_test

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/leaf-id/leaf/snowflake"
)

// A vectorLayout is a layout of the shared test vectors.
type vectorLayout struct {
	Epoch        int64 `json:"epoch"`
	TickMS       int64 `json:"tick_ms"`
	TimeBits     int   `json:"time_bits"`
	WorkerBits   int   `json:"worker_bits"`
	SequenceBits int   `json:"sequence_bits"`
}

func (v vectorLayout) layout() snowflake.Layout {
	return snowflake.Layout{time.UnixMilli(v.Epoch).UTC(), time.Duration(v.TickMS) * time.Millisecond, v.TimeBits, v.WorkerBits, v.SequenceBits}
}

// vectors reads a file of test vectors, which the clients in other languages run as well.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../api/vectors/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func number(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLayoutVectors(t *testing.T) {
	type parts struct {
		ID                           string
		Tick, Worker, Sequence, Time int64
	}
	var all struct {
		Layouts []struct {
			vectorLayout
			Name         string
			MaxWorker    int64 `json:"max_worker"`
			MaxSequence  int64 `json:"max_sequence"`
			IDs, Refused []parts
			Undecodable  []string
		}
		Invalid []vectorLayout
	}
	vectors(t, "layouts.json", &all)
	if len(all.Layouts) == 0 || len(all.Invalid) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range all.Layouts {
		l := v.layout()
		if preset, ok := snowflake.Preset(v.Name); ok && preset != l {
			t.Errorf("%s: the preset is %+v", v.Name, preset)
		}
		if l.MaxWorker() != v.MaxWorker || l.MaxSequence() != v.MaxSequence {
			t.Errorf("%s: %d workers, %d in sequence", v.Name, l.MaxWorker(), l.MaxSequence())
		}
		for _, p := range v.IDs {
			id, err := l.Compose(p.Tick, p.Worker, p.Sequence)
			if err != nil || id != number(t, p.ID) {
				t.Errorf("%s: composed %d, %v, want %s", v.Name, id, err, p.ID)
			}
			want := snowflake.Parts{Time: time.UnixMilli(p.Time).UTC(), Tick: p.Tick, Worker: p.Worker, Sequence: p.Sequence}
			if got, err := l.Decode(id); err != nil || got != want {
				t.Errorf("%s: decoded %+v, %v, want %+v", v.Name, got, err, want)
			}
		}
		for _, p := range v.Refused {
			if id, err := l.Compose(p.Tick, p.Worker, p.Sequence); err == nil {
				t.Errorf("%s: composed %d of %+v", v.Name, id, p)
			}
		}
		for _, id := range v.Undecodable {
			if p, err := l.Decode(number(t, id)); err == nil {
				t.Errorf("%s: decoded %s to %+v", v.Name, id, p)
			}
		}
	}
	for _, l := range all.Invalid {
		if l.layout().Check() == nil {
			t.Errorf("%+v is valid", l)
		}
	}
}

func TestLeaseVectors(t *testing.T) {
	var all struct {
		Leases []struct {
			Name            string
			Layout          vectorLayout
			Worker          int64
			Floor, Limit    int64
			FirstTick       int64  `json:"first_tick"`
			EndTick         int64  `json:"end_tick"`
			FirstID         string `json:"first_id"`
			LastID          string `json:"last_id"`
			UsedAfterLast   int64  `json:"used_after_last"`
			Inside, Outside []string
		}
	}
	vectors(t, "leases.json", &all)
	if len(all.Leases) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range all.Leases {
		l := v.Layout.layout()
		first, end := l.TickUp(v.Floor), l.TickDown(v.Limit)
		if max(first, end) != max(v.FirstTick, v.EndTick) || end != v.EndTick || first < end && first != v.FirstTick {
			t.Errorf("%s: ticks %d to %d, want %d to %d", v.Name, first, end, v.FirstTick, v.EndTick)
		}
		for i, ids := range [][]string{v.Outside, v.Inside} {
			for _, id := range ids {
				p, err := l.Decode(number(t, id))
				if inside := err == nil && p.Worker == v.Worker && first <= p.Tick && p.Tick < end; inside != (i == 1) {
					t.Errorf("%s: inside(%s) = %t", v.Name, id, inside)
				}
			}
		}
		if first >= end {
			continue
		}
		for _, want := range []struct {
			id             string
			tick, sequence int64
		}{{v.FirstID, first, 0}, {v.LastID, end - 1, l.MaxSequence()}} {
			if id, err := l.Compose(want.tick, v.Worker, want.sequence); err != nil || id != number(t, want.id) {
				t.Errorf("%s: composed %d, %v, want %s", v.Name, id, err, want.id)
			}
		}
		if used := l.Start(end).UnixMilli() - 1; used != v.UsedAfterLast || l.TickUp(used+1) != end {
			t.Errorf("%s: used is %d, want %d", v.Name, used, v.UsedAfterLast)
		}
	}
}
