package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"

	"github.com/leaf-id/leaf/internal/hint"
)

// A member whose directory was replaced by an older copy has forgotten writes that it acknowledged.
// Each member therefore records in the store how far its log reaches on its disk, and at a start the
// members compare these records with the logs that they find. A record may lag, and must never exceed
// the disk, not even after a crash: an honest member would be refused.

// indexPrefix begins the keys of the records, before the ID of a member.
const indexPrefix = "/leaf-cluster/index/"

// An entry is a place in the log, with the number of writes up to there without those of records.
type entry struct {
	index  uint64
	writes int64
}

// A recorder writes this member's record.
type recorder struct {
	synced   entry // is on this member's disk
	recorded int64 // the writes that the record contains
}

// record writes the last entry known to be on this member's disk. etcd may apply an entry before it
// has synced it, and sends nothing of a later batch before that. So each record contains the last
// entry applied before the previous record began: the batch of that one is synced by now.
func (r *recorder) record(ctx context.Context, m *Member, server *etcdserver.EtcdServer) error {
	if err := server.LinearizableReadNotify(ctx); err != nil { // it may be stopping
		return err
	}
	known, revision, err := indexes(ctx, server)
	if err != nil {
		return err
	}
	now := entry{writes: revision}
	for _, k := range known {
		now.writes -= k.version
	}
	if now.writes == r.recorded {
		return nil // an idle cluster writes nothing
	}
	now.index = server.AppliedIndex()
	own := server.MemberID()
	_, err = m.client.Put(ctx, indexPrefix+own.String(), strconv.FormatUint(max(r.synced.index, known[own].index), 10))
	if err == nil {
		r.recorded, r.synced = r.synced.writes, now
	}
	return err
}

// A record is the last known entry of a member.
type record struct {
	index   uint64
	version int64 // how often it was written
}

// indexes returns the records as this member knows them, and the number of all writes.
func indexes(ctx context.Context, server *etcdserver.EtcdServer) (map[types.ID]record, int64, error) {
	result, err := server.KV().Range(ctx, []byte(indexPrefix), []byte(clientv3.GetPrefixRangeEnd(indexPrefix)), mvcc.RangeOptions{})
	if err != nil {
		return nil, 0, err
	}
	found := make(map[types.ID]record)
	for _, kv := range result.KVs {
		id, err1 := types.IDFromString(string(kv.Key[len(indexPrefix):]))
		index, err2 := strconv.ParseUint(string(kv.Value), 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, 0, err
		}
		found[id] = record{index, kv.Version}
	}
	return found, result.Rev, nil
}

// lastIndex returns the index of the last entry in the log of a directory. Without an answer it
// returns [math.MaxUint64]: etcd reports a damaged log better.
func lastIndex(dir string) uint64 {
	folder := filepath.Join(dir, logFolder)
	snapshots, err := wal.ValidSnapshotEntries(zap.NewNop(), folder)
	if err != nil || len(snapshots) == 0 {
		return math.MaxUint64
	}
	newest := snapshots[len(snapshots)-1]
	log, err := wal.OpenForRead(zap.NewNop(), folder, newest)
	if err != nil {
		return math.MaxUint64
	}
	defer log.Close()
	_, _, entries, err := log.ReadAll()
	switch n := len(entries); {
	case err != nil:
		return math.MaxUint64
	case n > 0:
		return entries[n-1].GetIndex()
	}
	return newest.GetIndex()
}

// lastEntry is the index that this member's log reaches at least.
func (m *Member) lastEntry(server *etcdserver.EtcdServer) uint64 {
	return max(m.last, server.AppliedIndex())
}

// checkLog refuses a start if this member may have acknowledged more than its log contains.
func (m *Member) checkLog() error {
	log := hasLog(m.config.Dir)
	m.heard = make(map[types.ID]uint64)
	switch m.id.State {
	case stateNew:
		return nil
	case stateStarted:
		if time.Now().Before(m.id.NotBefore) {
			return fmt.Errorf("the cluster was restored, and may start at %s", m.id.NotBefore.UTC().Format(time.RFC3339))
		}
		if !log {
			return fmt.Errorf("%w: the log of member %s is not in %s", hint.ErrEmptied, m.id.ID, m.config.Dir)
		}
		m.last = lastIndex(m.config.Dir)
		return m.checkPeers(m.named())
	case stateAdded:
		if log {
			return fmt.Errorf("%w: %s has the log of another member", hint.ErrEmptied, m.config.Dir)
		}
		return m.checkStart()
	}
	return fmt.Errorf("%w in %s", hint.ErrNoMember, m.config.Dir)
}

// confirm compares the log with the identity, and completes that of a founder.
func (m *Member) confirm(server *etcdserver.EtcdServer) error {
	member, cluster := server.MemberID(), server.Cluster().ID()
	if m.id.State == stateNew && m.id.ID == 0 {
		m.id.ID, m.id.Cluster = member, cluster
		return m.id.write(m.config.Dir)
	}
	if m.id.ID != member || m.id.Cluster != cluster {
		return fmt.Errorf("%w: the log in %s is of member %s of cluster %s, not of member %s of cluster %s", hint.ErrOtherCluster,
			m.config.Dir, member, cluster, m.id.ID, m.id.Cluster)
	}
	if err := m.checkPeers(m.unnamed(server)); err != nil {
		return err
	}
	return m.checkRecords(server)
}

// unnamed returns the addresses of other members that the configuration does not name.
func (m *Member) unnamed(server *etcdserver.EtcdServer) (addresses []string) {
	for _, other := range server.Cluster().Members() {
		if addr := addressOf(other); other.ID != server.MemberID() && !slices.Contains(m.config.Peers, addr) {
			addresses = append(addresses, addr)
		}
	}
	return addresses
}

// checkRecords refuses a start next to a peer whose log is older than this member's records.
func (m *Member) checkRecords(server *etcdserver.EtcdServer) error {
	known, _, err := indexes(m.ctx, server)
	for _, id := range slices.Sorted(maps.Keys(m.heard)) {
		if has, had := m.heard[id], known[id].index; has < had {
			return rolledBack(id, has, had)
		}
	}
	return err
}

func rolledBack(id types.ID, has, had uint64) error {
	return fmt.Errorf("%w: the log of member %s ends with entry %d, and had entry %d", hint.ErrRolledBack, id, has, had)
}
