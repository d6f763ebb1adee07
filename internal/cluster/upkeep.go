package cluster

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/leaf-id/leaf/internal/filelock"
)

const pathDefragment = "/leaf/v1/defragment"

// upkeepEvery is how often the leader looks at the databases of the members. defragmentTimeout bounds
// a defragmentation: it copies the used part of at most the quota.
const (
	upkeepEvery       = 5 * time.Second
	defragmentTimeout = 10 * time.Minute
)

// A Database is the size of a member's database, in bytes: of the file, which never shrinks by itself,
// and of the used part. Both are 0 while the member defragments it.
type Database struct {
	Size int64 `json:"size"`
	Used int64 `json:"used"`
}

// isFull reports whether the file is near the quota, at which etcd refuses all writes of the cluster.
func (d Database) isFull(quota int64) bool { return d.Size >= quota/5*4 }

// isWasteful reports whether a defragmentation makes room: the file is then no longer full.
func (d Database) isWasteful(quota int64) bool { return d.isFull(quota) && d.Used <= quota/4*3 }

func (m *Member) database(server *etcdserver.EtcdServer) Database {
	if m.copying.Load() { // etcd answers no such question meanwhile
		return Database{}
	}
	db := server.Backend()
	return Database{Size: db.Size(), Used: db.SizeInUse()}
}

// countFreed has etcd count the pages that a compaction freed in a full database. It does so at the
// second commit of the database, and a member of a cluster that refuses writes makes only the first.
func (m *Member) countFreed(server *etcdserver.EtcdServer) {
	if db := m.database(server); db.isFull(m.config.Quota) && !db.isWasteful(m.config.Quota) {
		server.Backend().ForceCommit()
	}
}

// defragment copies the used part of this member's database to a new file. Reads and writes of this
// server wait for that; the log and the rest of the cluster do not.
func (m *Member) defragment(server *etcdserver.EtcdServer) error {
	if !m.copying.CompareAndSwap(false, true) {
		return errors.New("a defragmentation is under way")
	}
	defer m.copying.Store(false)
	begin, before := time.Now(), server.Backend().Size()
	if err := server.Defragment(); err != nil {
		return err
	}
	m.config.Logger.Info("made the database of this member smaller", "before", before, "after", server.Backend().Size(), "took", time.Since(begin))
	return filelock.SyncFolder(filepath.Join(m.config.Dir, databaseFolder))
}

// upkeep records how far this member's log reaches, and has the leader keep the databases of all
// members below the quota.
func (m *Member) upkeep(server *etcdserver.EtcdServer) {
	var own recorder
	var live liveData
	logged := ""
	every(m.ctx, m.failed, upkeepEvery, func() {
		ctx, cancel := context.WithTimeout(m.ctx, callTimeout)
		_ = own.record(ctx, m, server) // again next time
		cancel()
		m.countFreed(server)
		m.watchQuota(server, &live)
		problem := ""
		if server.Leader() == server.MemberID() {
			problem = errorText(m.makeRoom(server))
		}
		if problem != "" && problem != logged && m.ctx.Err() == nil {
			m.config.Logger.Warn("the databases of the cluster's members cannot be made smaller", "err", problem)
		}
		logged = problem
	})
}

// makeRoom defragments the members with much unused space, one after the other. Once all running
// members have room, it ends the alarm, with which the cluster refuses writes. The leader comes last
// and hands over first: the next leader then finds it among the others.
func (m *Member) makeRoom(server *etcdserver.EtcdServer) error {
	ctx, cancel := context.WithTimeout(m.ctx, defragmentTimeout)
	defer cancel()
	alarms := noSpace(server)
	if len(alarms) > 0 {
		if err := m.compact(ctx); err != nil {
			return err
		}
	}
	own := m.database(server)
	full := own.isFull(m.config.Quota)
	var heir types.ID
	for _, other := range server.Cluster().Members() {
		if other.ID == server.MemberID() {
			continue
		}
		status, err := m.status(ctx, addressOf(other))
		if err != nil { // it raises the alarm again if it comes back full
			continue
		}
		if !other.IsLearner && !status.Failed {
			heir = other.ID
		}
		if status.Database.isWasteful(m.config.Quota) {
			if err := m.ask(ctx, http.MethodPost, addressOf(other), pathDefragment, nil, &status.Database); err != nil {
				return err
			}
		}
		full = full || status.Database.isFull(m.config.Quota)
	}
	switch {
	case own.isWasteful(m.config.Quota) && heir != 0:
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return server.MoveLeader(limited, uint64(server.MemberID()), uint64(heir))
	case own.isWasteful(m.config.Quota):
		return m.defragment(server)
	case len(alarms) > 0 && full:
		return errors.New("the store is full: the cluster refuses writes")
	}
	return m.endAlarms(ctx, server, alarms)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// noSpace returns the members whose full databases have the cluster refuse writes.
func noSpace(server *etcdserver.EtcdServer) (ids []uint64) {
	for _, alarm := range server.Alarms() {
		if alarm.Alarm == etcdserverpb.AlarmType_NOSPACE {
			ids = append(ids, alarm.MemberID)
		}
	}
	return ids
}

func (m *Member) endAlarms(ctx context.Context, server *etcdserver.EtcdServer, ids []uint64) error {
	for _, id := range ids {
		_, err := server.Alarm(ctx, &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: id, Alarm: etcdserverpb.AlarmType_NOSPACE})
		if err != nil {
			return err
		}
		m.config.Logger.Info("the database of a member has room again: the cluster accepts writes", "member", types.ID(id).String())
	}
	return nil
}

// compact forgets the history at once. Nobody but a snapshot reads it, and that fails then.
func (m *Member) compact(ctx context.Context) error {
	_, err := m.client.Compact(ctx, m.running().KV().Rev(), clientv3.WithCompactPhysical())
	if errors.Is(err, rpctypes.ErrCompacted) {
		return nil
	}
	return err
}
