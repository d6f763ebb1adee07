package mysql

import "testing"

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
		"alone, flushed":        {facts{flush: "1", engine: "InnoDB"}, false},
		"alone, not flushed":    {facts{flush: "2", engine: "InnoDB"}, true},
		"alone, not known":      {facts{engine: "InnoDB"}, true},
		"another engine":        {facts{flush: "1", engine: "ROCKSDB"}, true},
		"replicated":            {facts{flush: "1", engine: "InnoDB", replicated: true}, true},
		"agreed":                {facts{flush: "1", engine: "InnoDB", replicated: true, agreed: true}, false},
		"agreed, each in haste": {facts{flush: "0", engine: "InnoDB", agreed: true}, false},
	}
	for name, tt := range tests {
		if got := tt.facts.mayLose(); got != tt.want {
			t.Errorf("%s: %v", name, got)
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
