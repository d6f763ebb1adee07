package e2e

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// moveZone writes a time zone, to a folder for the variable ZONEINFO, whose clocks show at one moment
// what those of the real zone showed in a night.
func moveZone(t *testing.T, dir string, n night, to time.Time) {
	t.Helper()
	zone, err := time.LoadLocation(n.zone)
	if err != nil {
		t.Fatal(err)
	}
	from, err := time.Parse(time.RFC3339, n.moment)
	if err != nil {
		t.Fatal(err)
	}
	moved := from.Unix() - to.Unix()
	_, before := from.Add(-time.Second).In(zone).Zone()
	_, after := from.In(zone).Zone()
	path := filepath.Join(dir, n.zone)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, zoneFile(to, int64(before)+moved, int64(after)+moved), 0o600); err != nil {
		t.Fatal(err)
	}
}

// zoneFile returns a zone with two offsets from UTC, in seconds, in the format of RFC 9636, version 1.
func zoneFile(change time.Time, before, after int64) []byte {
	const changes, kinds, letters = 1, 2, 4
	file := append([]byte("TZif"), make([]byte, 16)...)
	for _, count := range []uint32{0, 0, 0, changes, kinds, letters} {
		file = binary.BigEndian.AppendUint32(file, count)
	}
	file = binary.BigEndian.AppendUint32(file, uint32(change.Unix()))
	file = append(file, 1) // the second kind
	for _, offset := range []int64{before, after} {
		file = append(binary.BigEndian.AppendUint32(file, uint32(int32(offset))), 0, 0)
	}
	return append(file, "LAB\x00"...)
}

// The moved clocks show the same as those of the zone around each night.
func TestMovedZones(t *testing.T) {
	t.Parallel()
	to := time.Now().Truncate(time.Second)
	dir := t.TempDir()
	for _, n := range nights {
		moveZone(t, dir, n, to)
		data, err := os.ReadFile(filepath.Join(dir, n.zone))
		if err != nil {
			t.Fatal(err)
		}
		moved, err := time.LoadLocationFromTZData("moved", data)
		if err != nil {
			t.Fatal(err)
		}
		zone, _ := time.LoadLocation(n.zone)
		from, _ := time.Parse(time.RFC3339, n.moment)
		for d := -40 * time.Minute; d < 40*time.Minute; d += time.Second {
			const clock = "2006-01-02 15:04:05"
			if got, want := to.Add(d).In(moved).Format(clock), from.Add(d).In(zone).Format(clock); got != want {
				t.Fatalf("%s, %v: the clock shows %s, want %s", n.tag, d, got, want)
			}
		}
	}
}
