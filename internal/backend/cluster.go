package backend

import "github.com/leaf-id/leaf/internal/health"

type clusterMember interface{ Stats() health.Cluster }

// ClusterStats returns a function that reads the figures of this process's member of a cluster; nil
// without one.
func (b *Backend) ClusterStats() func() health.Cluster {
	if m, ok := b.DB.(clusterMember); ok {
		return m.Stats
	}
	return nil
}
