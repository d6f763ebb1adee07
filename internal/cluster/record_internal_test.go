package cluster

import (
	"path/filepath"
	"testing"
	"time"
)

// A record has the last entry before the previous record, which the disk has by then. An idle member
// stops writing records.
func TestRecordsLagAndEnd(t *testing.T) {
	t.Parallel()
	c := Config{Dir: filepath.Join(t.TempDir(), "cluster"), Address: "127.0.0.1:1"}
	err := Create(c, func(dir string) (time.Duration, error) {
		c.Dir = dir
		m, err := Open(c)
		if err != nil {
			return 0, err
		}
		defer m.Close()
		if err := m.Start(); err != nil {
			return 0, err
		}
		if err := m.Ready(t.Context()); err != nil {
			return 0, err
		}
		server := m.running()
		var own recorder
		var synced []entry
		for range 4 {
			if err := own.record(t.Context(), m, server); err != nil {
				return 0, err
			}
			synced = append(synced, own.synced)
		}
		if synced[1] == synced[0] || synced[3] != synced[1] {
			t.Errorf("four records of an idle member, which writes two: %v", synced)
		}
		if _, err := m.Client().Put(t.Context(), "counter", "1"); err != nil {
			return 0, err
		}
		applied := server.AppliedIndex()
		for _, want := range []bool{false, true} {
			if err := own.record(t.Context(), m, server); err != nil {
				return 0, err
			}
			known, _, err := indexes(t.Context(), server)
			if got := known[server.MemberID()].index; err != nil || (got >= applied) != want {
				t.Errorf("the record is %d and the log had %d before it; it contains that: want %v, %v", got, applied, want, err)
			}
		}
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
