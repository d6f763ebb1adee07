package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
)

// A leader syncs its log before it goes on, so its slow disk holds up all writes of the cluster, and
// can still be quick enough to stay the leader. It therefore hands over to a member with a faster one.
const (
	slowSync     = 500 * time.Millisecond // a disk is slow at this mean of a round's syncs
	slowRounds   = 3                      // in a row before a leader hands over
	diskEvery    = 3 * time.Second        // the length of a round
	handOverGap  = 15 * time.Second       // least time between two elections by slow disks
	handOverTime = 5 * time.Second        // for one attempt
)

// A diskWatch measures a member's disk, and hands over from a slow one while it leads.
type diskWatch struct {
	syncs  func() (count uint64, seconds float64) // so far
	leads  func() (leader, own types.ID)          // leader: 0 during an election
	voters func(context.Context) []voter          // the others that answer
	move   func(context.Context, types.ID) error
	log    *slog.Logger

	mean  atomic.Int64 // of the last round's syncs, a [time.Duration]; 0: without a sync
	moved atomic.Int64
}

// A voter is another member with a vote.
type voter struct {
	id   types.ID
	addr string
	sync time.Duration // the mean of its last syncs; 0: not known
}

func (w *diskWatch) run(ctx context.Context, failed <-chan struct{}) {
	var leader types.ID
	var allowed time.Time // not before
	count, seconds := w.syncs()
	slow := 0
	every(ctx, failed, diskEvery, func() {
		mean := time.Duration(0)
		before, spent := count, seconds
		if count, seconds = w.syncs(); count > before {
			mean = time.Duration((seconds - spent) / float64(count-before) * float64(time.Second))
		}
		w.mean.Store(int64(mean))
		now, own := w.leads()
		if now != leader && now != 0 {
			if leader != 0 {
				allowed = time.Now().Add(handOverGap)
			}
			leader, slow = now, 0
		}
		switch {
		case mean >= slowSync:
			slow++
		case mean > 0: // a round without a sync tells nothing
			slow = 0
		}
		if now == own && slow >= slowRounds && !time.Now().Before(allowed) {
			w.handOver(ctx, mean)
		}
	})
}

// handOver makes the voter with the fastest disk the leader, unless its disk is slow, too.
func (w *diskWatch) handOver(ctx context.Context, own time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	var heir voter
	for _, other := range w.voters(ctx) {
		if other.sync > 0 && other.sync < slowSync && 2*other.sync <= own && (heir.id == 0 || other.sync < heir.sync) {
			heir = other
		}
	}
	if heir.id == 0 {
		return
	}
	log := w.log.With("sync", own, "to", heir.addr, "its_sync", heir.sync)
	if err := w.move(ctx, heir.id); err != nil {
		log.Warn("the disk of this leader is slow, and it could not hand over to a member with a faster one: it tries again", "err", err)
		return
	}
	w.moved.Add(1)
	log.Warn("the disk of this leader is slow, so it has handed over to a member with a faster one")
}

func (m *Member) newDiskWatch() *diskWatch {
	return &diskWatch{
		syncs:  syncsOfProcess,
		leads:  func() (leader, own types.ID) { return m.running().Leader(), m.running().MemberID() },
		voters: m.otherVoters,
		move: func(ctx context.Context, heir types.ID) error {
			return m.running().MoveLeader(ctx, uint64(m.running().MemberID()), uint64(heir))
		},
		log: m.config.Logger,
	}
}

// otherVoters returns the other members with a vote that answer and have not left the cluster.
func (m *Member) otherVoters(ctx context.Context) (all []voter) {
	server := m.running()
	for _, other := range server.Cluster().Members() {
		if other.ID == server.MemberID() || other.IsLearner {
			continue
		}
		if status, err := m.status(ctx, addressOf(other)); err == nil && !status.Failed && status.Member == other.ID.String() {
			all = append(all, voter{other.ID, addressOf(other), time.Duration(status.Sync * float64(time.Second))})
		}
	}
	return all
}

// syncsOfProcess returns the number and the time of all syncs of logs by this process, which has one
// member as a rule.
func syncsOfProcess() (count uint64, seconds float64) {
	etcd, err := figures()
	if err != nil {
		return 0, 0
	}
	syncs := etcd[syncMetric].GetHistogram()
	return syncs.GetSampleCount(), syncs.GetSampleSum()
}
