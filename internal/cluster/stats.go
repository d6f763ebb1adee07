package cluster

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-id/leaf/internal/health"
)

const syncMetric = "etcd_disk_wal_fsync_duration_seconds"

// Stats returns the figures of this member. Most come from etcd, and cover all members in the process.
func (m *Member) Stats() health.Cluster {
	stats := health.Cluster{Slow: float64(m.slow.Load()), Quota: float64(m.config.Quota), HandOvers: float64(m.disk.moved.Load()), Short: m.short.Load()}
	if server := m.running(); server != nil && m.failure() == nil {
		stats.HasLeader, stats.IsLeader = server.Leader() != 0, server.Leader() == server.MemberID()
	}
	families, err := prometheus.DefaultGatherer.Gather() // of a failed collector some are missing
	if err != nil {
		m.config.Logger.Debug("some figures of the cluster are missing", "err", err)
	}
	figures := map[string]*float64{
		"etcd_server_leader_changes_seen_total":   &stats.Changes,
		"etcd_server_proposals_failed_total":      &stats.Failed,
		"etcd_mvcc_db_total_size_in_bytes":        &stats.Database,
		"etcd_mvcc_db_total_size_in_use_in_bytes": &stats.Used,
	}
	for _, family := range families {
		if len(family.GetMetric()) != 1 {
			continue
		}
		metric := family.GetMetric()[0]
		if figure := figures[family.GetName()]; figure != nil {
			*figure = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() // it is one of the two
		}
		if family.GetName() == syncMetric {
			h := metric.GetHistogram()
			stats.Syncs, stats.SyncSeconds, stats.SyncBuckets = h.GetSampleCount(), h.GetSampleSum(), make(map[float64]uint64)
			for _, b := range h.GetBucket() {
				stats.SyncBuckets[b.GetUpperBound()] = b.GetCumulativeCount()
			}
		}
	}
	return stats
}
