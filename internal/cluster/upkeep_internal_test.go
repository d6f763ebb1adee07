package cluster

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// Pages that a compaction freed in a full database count as unused though nobody writes afterwards.
func TestFreedPagesOfAFullDatabaseCount(t *testing.T) {
	t.Parallel()
	const addr = "127.0.0.1:1"
	c := Config{Dir: filepath.Join(t.TempDir(), "cluster"), Address: addr, Peers: []string{addr}, Quota: 8 << 20}
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
		fillAndCompact(t, m)
		for range 1000 { // a reader may keep the pages for a moment
			m.countFreed(m.running())
			if db := m.database(m.running()); db.isWasteful(c.Quota) || db.Size < c.Quota/2 { // the upkeep may have come first
				return 0, nil
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%+v", m.database(m.running()))
		return 0, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// fillAndCompact commits each write at once, for the size of the file to follow it: a fast disk takes
// more than the quota between two commits of etcd's own.
func fillAndCompact(t *testing.T, m *Member) {
	t.Helper()
	for !m.database(m.running()).isFull(m.config.Quota) {
		if _, err := m.client.Put(t.Context(), "filler", strings.Repeat("x", 256<<10)); err != nil {
			t.Fatal(err)
		}
		m.running().Backend().ForceCommit()
	}
	if _, err := m.client.Compact(t.Context(), m.running().KV().Rev()); err != nil {
		t.Fatal(err)
	}
	for done := int64(0); done < m.running().KV().FirstRev(); time.Sleep(time.Millisecond) {
		tx := m.running().Backend().ReadTx()
		tx.RLock()
		done, _ = mvcc.UnsafeReadFinishedCompact(tx)
		tx.RUnlock()
	}
}
