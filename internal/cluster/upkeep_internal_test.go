package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/storage/mvcc"
)

// A full file is made smaller wherever that ends the state of being full.
func TestIsWasteful(t *testing.T) {
	t.Parallel()
	for d, want := range map[Database]bool{{Size: 79, Used: 10}: false, {Size: 80, Used: 75}: true, {Size: 85, Used: 70}: true, {Size: 100, Used: 76}: false} {
		if got := d.isWasteful(100); got != want {
			t.Errorf("%+v: %v, want %v", d, got, want)
		}
	}
}

// A renewed certificate is that of the next request.
func TestClientReadsItsCertificateAgain(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := TLS{CA: filepath.Join(folder, "ca.pem"), Cert: filepath.Join(folder, "h1.pem"), Key: filepath.Join(folder, "h1-key.pem")}
	if err := Certify(folder, []string{"h1"}); err != nil {
		t.Fatal(err)
	}
	encryption, err := files.client()
	if err != nil {
		t.Fatal(err)
	}
	before, err1 := encryption.GetClientCertificate(nil)
	err2 := errors.Join(os.Remove(files.Cert), os.Remove(files.Key), Certify(folder, []string{"h1"}))
	after, err3 := encryption.GetClientCertificate(nil)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before.Certificate[0], after.Certificate[0]) {
		t.Error("the certificate is the old one")
	}
}

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
