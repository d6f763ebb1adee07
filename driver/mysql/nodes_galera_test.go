package mysql_test

import (
	"slices"
	"sync"
	"testing"
)

// Starts on all members at once get different IDs. The members count in steps of their own, which
// must not look like lost rows.
func galeraNodes(t *testing.T, g *galera) {
	const starts, rounds = 12, 5
	database := g.Member(0).NewDatabase(t)
	first := mysqlDB(t, mysqlConfig(t, g.Member(0), database))
	if err := initNodes(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ids := make([]int64, starts*rounds)
	var wg sync.WaitGroup
	for i := range starts {
		wg.Go(func() {
			for round := range rounds {
				b := nodeBed{db: mysqlDB(t, g.config(t, database))}
				n := b.start(t, nil)
				var err error
				for range 20 { // after a refused commit
					if ids[i*rounds+round], err = n.Assign(t.Context(), 1_000_000); err == nil {
						break
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	slices.Sort(ids)
	g.CatchUp(t)
	nodeBed{db: first}.wantIDs(t, ids...)
	if n := len(slices.Compact(ids)); n != starts*rounds {
		t.Errorf("%d starts have %d IDs", starts*rounds, n)
	}
	t.Logf("%d starts used up the worker IDs up to %d", starts*rounds, slices.Max(ids))
}
