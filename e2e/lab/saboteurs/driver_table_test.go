package saboteurs

import (
	"slices"
	"strings"
	"testing"
)

// A driver is a package whose conformance suites have to notice the faults of its code.
type driver struct {
	folder   string
	run      string   // its suites, of one server each
	families []string // whose code it runs; the first driver of a family has to notice all its faults, and each SQL driver those of sql
	without  []string // rules, by their beginnings, that do not concern it
	hides    []string // faults of sql, with their rules, that its database hides, always or by chance
}

var drivers = []driver{
	{"driver/kv", "^Test(Store|Registry)$/^(memory|adding)$", []string{"kv"}, []string{"registry assign"}, nil},
	{"driver/etcd", "^Test(Store|Registry)$", []string{"kv", "etcd"}, []string{"registry assign"}, nil},
	{"driver/redis", "^Test(Store|Registry)$/^single$", []string{"kv", "redis"}, []string{"registry assign", "registry watch/"}, nil},
	{"driver/nats", "^Test(Store|Registry)$", []string{"kv", "nats"}, []string{"registry assign", "registry watch/", "registry record/newer", "registry record/garbage"}, nil},
	{"driver/zookeeper", "^Test(Store|PoolRegistry|LeafAssigns)$", []string{"kv", "zookeeper"}, nil, nil},
	{"driver/mysql", "^Test(MySQLStore|MySQLRegistry|NodesAssign)$/^(java|plain|assign)$", []string{"sql", "mysql"}, []string{"registry swap/version"}, nil},
	{"driver/postgres", "^TestPostgres(Store|Registry)$/^(own_table|odd)$", []string{"sql", "postgres"}, []string{"registry assign"}, []string{
		"sql return by value: store return/lowered and granted again",
		"sql return by value: store return/created anew and granted again",
	}},
	{"driver/sqlite", "^TestSQLite(Store|Registry)$", []string{"sql", "sqlite"}, []string{"registry assign"}, []string{"sql lost update: store catalog/raise while advancing"}},
	// Tickets come one by one: nothing is returned, and no call is for more than the stock.
	{"driver/ticket", "^TestStore$", []string{"ticket"}, []string{"store return/", "store advance/overflow", "store advance/huge n"}, nil},
}

// lacks reports whether a rule does not concern a driver: those with a version that every read checks
// keep no version, and so on.
func (d driver) lacks(rule string) bool {
	return rule != "registry assign" && slices.Contains(lacking[rule], d.families[0]) ||
		slices.ContainsFunc(d.without, func(beginning string) bool { return strings.HasPrefix(rule, beginning) })
}

// owes reports whether a driver has to notice a fault of its families.
func (d driver) owes(p proof) bool {
	if d.lacks(p.rule) || slices.Contains(d.hides, p.String()) {
		return false
	}
	has := func(d driver) bool { return slices.Contains(d.families, p.family()) }
	if p.family() == "sql" {
		return has(d)
	}
	return d.folder == drivers[slices.IndexFunc(drivers, has)].folder
}

// At least one driver has to notice each fault. [TestDrivers] shows that it does.
func TestFaultsHaveDrivers(t *testing.T) {
	all, err := readProofs(proofs)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range all {
		known[p.String()] = true
		if !slices.ContainsFunc(drivers, func(d driver) bool { return d.owes(p) }) {
			t.Errorf("no driver has to notice %s", p)
		}
	}
	for _, d := range drivers {
		for _, hidden := range d.hides {
			if !known[hidden] {
				t.Errorf("%s hides %q, which proofs.txt does not have", d.folder, hidden)
			}
		}
	}
}
