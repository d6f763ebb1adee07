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

func TestForgets(t *testing.T) {
	tests := map[string]struct {
		facts mysqlFacts
		want  bool
	}{
		"alone, flushed":        {mysqlFacts{flush: "1", engine: "InnoDB"}, false},
		"alone, not flushed":    {mysqlFacts{flush: "2", engine: "InnoDB"}, true},
		"alone, not known":      {mysqlFacts{engine: "InnoDB"}, true},
		"another engine":        {mysqlFacts{flush: "1", engine: "ROCKSDB"}, true},
		"replicated":            {mysqlFacts{flush: "1", engine: "InnoDB", replicated: true}, true},
		"agreed":                {mysqlFacts{flush: "1", engine: "InnoDB", replicated: true, agreed: true}, false},
		"agreed, each in haste": {mysqlFacts{flush: "0", engine: "InnoDB", agreed: true}, false},
	}
	for name, tt := range tests {
		if got := tt.facts.forgets(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
