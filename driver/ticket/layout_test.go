package ticket_test

import (
	"math"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/ticket"
)

// Each ID of the first blocks belongs to one server, and align finds the next of it.
func TestShares(t *testing.T) {
	for _, stride := range []int64{1, 2, 7, 1000} {
		for servers := int64(1); servers <= 5; servers++ {
			for number := int64(1); number <= servers; number++ {
				testShare(t, servers, number, stride)
			}
		}
	}
}

func testShare(t *testing.T, servers, number, stride int64) {
	t.Helper()
	s := ticket.Share(servers, number, stride)
	owns := func(id int64) bool { return id/stride%servers == number-1 }
	for floor := range 3 * servers * stride {
		want := floor
		for !owns(want) {
			want++
		}
		if got := s.Align(floor); got != want {
			t.Fatalf("server %d of %d, blocks of %d: from %d on %d, want %d", number, servers, stride, floor, got, want)
		}
		high := want - 1
		for high >= 0 && !owns(high) {
			high--
		}
		if got := s.Drawn(want); got != high+1 {
			t.Fatalf("server %d of %d, blocks of %d: %d is next, so %d was reached, want %d", number, servers, stride, want, got, high+1)
		}
	}
	for _, floor := range []int64{math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64 - stride, math.MaxInt64 - servers*stride} {
		if got := s.Align(floor); got < floor || got != math.MaxInt64 && !owns(got) {
			t.Fatalf("server %d of %d, blocks of %d: from %d on %d", number, servers, stride, floor, got)
		}
	}
}

func TestTables(t *testing.T) {
	l := ticket.Layout{TablePerTag: true}
	seen := make(map[string]string)
	for _, tag := range []string{"order", "Order", "order ", "a_b", "a-b", "订单", "`; DROP TABLE x", "_x", strings.Repeat("x", 51), strings.Repeat("x", 128)} {
		table := l.Table(tag)
		if other, ok := seen[strings.ToLower(table)]; ok {
			t.Errorf("%q and %q share the table %s", tag, other, table)
		}
		seen[strings.ToLower(table)] = tag
		if len(table) > 64 || strings.ContainsFunc(table, func(r rune) bool { return r > 'z' || r < '0' }) {
			t.Errorf("%q: table %s", tag, table)
		}
	}
	if got := l.Table("order"); got != "Tickets64_order" {
		t.Errorf("table %s", got)
	}
	if got := (ticket.Layout{}).Table("order"); got != "Tickets64" {
		t.Errorf("table %s", got)
	}
}

func TestServersThatLoseCounters(t *testing.T) {
	for version, want := range map[string]bool{
		"5.7.44-log": true, "8.0.36": false, "8.4.0": false, "9.1.0": false,
		"10.1.48-MariaDB-0+deb9u2": true, "10.2.44-MariaDB": true, "10.11.19-MariaDB-0+deb12u1": false, "11.4.2-MariaDB": false,
	} {
		if got := ticket.LosesCounters(version); got != want {
			t.Errorf("%s: %v", version, got)
		}
	}
}
