package cluster

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/leaf-id/leaf/internal/health"
)

const syncMetric = "etcd_disk_wal_fsync_duration_seconds"

// Stats returns the figures of this member. Most come from etcd, and cover all members in the process.
func (m *Member) Stats() health.Cluster {
	stats := health.Cluster{Slow: float64(m.slow.Load()), Quota: float64(m.config.Quota), HandOvers: float64(m.disk.moved.Load()), Short: m.short.Load()}
	if server := m.running(); server != nil && m.failure() == nil {
		stats.HasLeader, stats.IsLeader = server.Leader() != 0, server.Leader() == server.MemberID()
	}
	etcd, err := figures()
	if err != nil {
		m.config.Logger.Debug("some figures of the cluster are missing", "err", err)
	}
	stats.Changes = etcd["etcd_server_leader_changes_seen_total"].GetCounter().GetValue()
	stats.Failed = etcd["etcd_server_proposals_failed_total"].GetCounter().GetValue()
	stats.Database = etcd["etcd_mvcc_db_total_size_in_bytes"].GetGauge().GetValue()
	stats.Used = etcd["etcd_mvcc_db_total_size_in_use_in_bytes"].GetGauge().GetValue()
	if syncs := etcd[syncMetric].GetHistogram(); syncs != nil {
		stats.Syncs, stats.SyncSeconds, stats.SyncBuckets = syncs.GetSampleCount(), syncs.GetSampleSum(), make(map[float64]uint64)
		for _, b := range syncs.GetBucket() {
			stats.SyncBuckets[b.GetUpperBound()] = b.GetCumulativeCount()
		}
	}
	return stats
}

// figures returns the metrics of this process without labels, by name. With an error some are missing.
func figures() (map[string]*dto.Metric, error) {
	families, err := prometheus.DefaultGatherer.Gather()
	found := make(map[string]*dto.Metric)
	for _, family := range families {
		if len(family.GetMetric()) == 1 {
			found[family.GetName()] = family.GetMetric()[0]
		}
	}
	return found, err
}
