package health

// A Cluster has the figures of a server's member of a cluster.
type Cluster struct {
	HasLeader, IsLeader   bool
	Changes, Failed, Slow float64 // counters
	HandOvers             float64
	Short                 bool    // data fill three quarters of the quota
	Database, Used, Quota float64 // bytes
	Syncs                 uint64
	SyncSeconds           float64
	SyncBuckets           map[float64]uint64 // cumulative numbers, by seconds
}
