package cluster

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/leaf-id/leaf/internal/hint"
)

// liveAfter is how long the used part of a database must fill much of the quota before that is data
// and not history. The leader forgets the history meanwhile.
const liveAfter = time.Minute

// A liveData decides whether data alone fill three quarters of a quota.
type liveData struct {
	since     time.Time // of when the used part does; zero: it does not
	compacted time.Time
}

// look reports whether data do, and whether the leader should forget the history to find out.
func (l *liveData) look(now time.Time, db Database, quota int64) (short, compact bool) {
	if db.Used < quota/4*3 {
		l.since = time.Time{}
		return false, false
	}
	if l.since.IsZero() {
		l.since = now
	}
	if now.Sub(l.since) > liveAfter+callTimeout {
		return true, false
	}
	if compact = now.Sub(l.compacted) >= liveAfter; compact {
		l.compacted = now
	}
	return false, compact
}

// watchQuota warns once if the data leave too little room.
func (m *Member) watchQuota(server *etcdserver.EtcdServer, live *liveData) {
	db := m.database(server)
	if db.Size == 0 { // it is being defragmented
		return
	}
	short, compact := live.look(time.Now(), db, m.config.Quota)
	if was := m.short.Swap(short); short && !was {
		err := fmt.Errorf("%w: %d of %d bytes", hint.ErrQuotaShort, db.Used, m.config.Quota)
		m.config.Logger.Warn("the store of the cluster outgrows its quota", "err", err)
	}
	if compact && server.Leader() == server.MemberID() {
		ctx, cancel := context.WithTimeout(m.ctx, callTimeout)
		defer cancel()
		_ = m.compact(ctx) // the members do so every few minutes anyway
	}
}
