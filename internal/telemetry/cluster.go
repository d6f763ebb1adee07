package telemetry

var (
	clusterLed      = gauge("leaf_cluster_has_leader", "1 if this server's cluster has a leader, else 0.")
	clusterLeads    = gauge("leaf_cluster_is_leader", "1 if this server is the leader of its cluster, else 0.")
	clusterChanges  = counter("leaf_cluster_leader_changes_total", "Elections of another leader that this server has seen.")
	clusterFailed   = counter("leaf_cluster_writes_failed_total", "Writes of this server that the cluster did not accept.")
	clusterSlow     = counter("leaf_cluster_slow_total", "Steps of this server's member of the cluster that took too long, because of its disk or its processor.")
	clusterHanded   = counter("leaf_cluster_handovers_total", "How often this server, as the leader with a slow disk, has handed over to a member with a faster one.")
	clusterSync     = histogram("leaf_cluster_sync_duration_seconds", "How long the disk took to keep an entry of the cluster's log.")
	clusterDatabase = gauge("leaf_cluster_database_bytes", "The size of this member's database, which the members make smaller from time to time.")
	clusterUsed     = gauge("leaf_cluster_database_used_bytes", "The used part of that.")
	clusterQuota    = gauge("leaf_cluster_quota_bytes", "The size of a member's database at which the cluster refuses writes.")
	clusterShort    = gauge("leaf_cluster_quota_short", "1 if the data alone, without history, fill three quarters of that size, else 0.")
)

func (c *Collector) collectCluster(out sink) {
	f := c.Cluster()
	out.putBool(clusterLed, f.HasLeader)
	out.putBool(clusterLeads, f.IsLeader)
	out.put(clusterChanges, f.Changes)
	out.put(clusterFailed, f.Failed)
	out.put(clusterSlow, f.Slow)
	out.put(clusterHanded, f.HandOvers)
	out.latencies(clusterSync, f.Syncs, f.SyncSeconds, f.SyncBuckets, nil)
	out.put(clusterDatabase, f.Database)
	out.put(clusterUsed, f.Used)
	out.put(clusterQuota, f.Quota)
	out.putBool(clusterShort, f.Short)
}
