package mysql

import (
	"testing"

	"github.com/leaf-id/leaf/internal/mysqlconn"
)

func TestGalera(t *testing.T) {
	tests := []struct {
		on, provider string
		want         bool
	}{
		{"ON", "/usr/lib/galera/libgalera_smm.so", true},
		{"1", "/usr/lib/galera/libgalera_smm.so", true},
		{"ON", "none", false},
		{"ON", "", false},
		{"OFF", "/usr/lib/galera/libgalera_smm.so", false},
		{"", "", false},
	}
	for _, tt := range tests {
		if got := isGalera(map[string]string{"wsrep_on": tt.on, "wsrep_provider": tt.provider}); got != tt.want {
			t.Errorf("wsrep_on=%s wsrep_provider=%s: %v", tt.on, tt.provider, got)
		}
	}
}

func TestMayLose(t *testing.T) {
	tests := map[string]struct {
		facts facts
		want  bool
	}{
		"alone, flushed":        {facts{sync: mysqlconn.Sync{Flush: "1"}, engine: "InnoDB"}, false},
		"alone, flushed twice":  {facts{sync: mysqlconn.Sync{Flush: "3"}, engine: "InnoDB"}, false},
		"alone, not flushed":    {facts{sync: mysqlconn.Sync{Flush: "2"}, engine: "InnoDB"}, true},
		"alone, not known":      {facts{engine: "InnoDB"}, true},
		"another engine":        {facts{sync: mysqlconn.Sync{Flush: "1"}, engine: "ROCKSDB"}, true},
		"replicated":            {facts{sync: mysqlconn.Sync{Flush: "1"}, engine: "InnoDB", replicated: true}, true},
		"agreed":                {facts{sync: mysqlconn.Sync{Flush: "1"}, engine: "InnoDB", replicated: true, agreed: true}, false},
		"agreed, each in haste": {facts{sync: mysqlconn.Sync{Flush: "0"}, engine: "InnoDB", agreed: true}, false},
	}
	for name, tt := range tests {
		if got := tt.facts.mayLose(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What the server says now replaces what it said first; the servers in the URL stay.
func TestMayLoseNow(t *testing.T) {
	first := facts{sync: mysqlconn.Sync{Flush: "1"}, engine: "InnoDB"}
	logged, several := first, first
	logged.replicated, several.several = true, true
	for _, tt := range []struct {
		facts    facts
		settings string
		want     bool
	}{
		{first, "0 1", false}, {first, "0 3", false}, {first, "1 1", true}, {first, "0 2", true}, {first, "", true},
		{logged, "0 1", false}, {several, "0 1", true},
	} {
		if got := tt.facts.mayLoseNow(tt.settings); got != tt.want {
			t.Errorf("%+v, now %q: %v", tt.facts, tt.settings, got)
		}
	}
}

// A ROW_COUNT() of -1 is that of another statement than the UPDATE.
func TestCheckRows(t *testing.T) {
	for rows, ok := range map[int64]bool{-1: false, 0: true, 1: true, 2: false} {
		if err := checkRows(rows); (err == nil) != ok {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
}

// The answer to an Advance has all its parts, or is refused.
func TestParseAdvanced(t *testing.T) {
	full := advanced{rows: 1, end: 1001, server: "7", found: true, maxID: 1001, step: 1000, micros: "5", guard: "1 1 0 0 NO_CHAIN", identity: "ABC"}
	gone := advanced{server: "7", micros: "-", guard: "1 1 0 0 NO_CHAIN"}
	for text, want := range map[string]*advanced{
		"1 1001 7 1001 1000 5 1 1 0 0 NO_CHAIN ABC": &full,
		"0 0 7 - - - 1 1 0 0 NO_CHAIN ":             &gone,
		"1 1001 7 1001 1000 5":                      nil,
		"1 1001 7 1001 1000 5 1":                    nil,
		"x 1001 7 1001 1000 5 1 1 0 0 NO_CHAIN ABC": nil,
		"1 -1 7 1001 1000 5 1 1 0 0 NO_CHAIN ABC":   nil,
		"1 1001 7 1e3 1000 5 1 1 0 0 NO_CHAIN ABC":  nil,
		"1 1001 7 1001 1.5 5 1 1 0 0 NO_CHAIN ABC":  nil,
		"": nil,
	} {
		var got advanced
		err := got.parse(text)
		if want == nil && err == nil || want != nil && (err != nil || got != *want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
