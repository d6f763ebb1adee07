package backend

import "github.com/leaf-id/leaf/internal/health"

type clusterMember interface {
	Stats() health.Cluster
	Failure() (restart bool, err error)
}

// ClusterStats returns a function that reads the figures of this process's member of a cluster; nil
// without one.
func (b *Backend) ClusterStats() func() health.Cluster {
	if m, ok := b.DB.(clusterMember); ok {
		return m.Stats
	}
	return nil
}

// MemberFailure returns why this process's member of a cluster has ended; nil: it has not, or there is
// none. Restart: a new process brings it back.
func (b *Backend) MemberFailure() (restart bool, err error) {
	if b == nil {
		return false, nil
	}
	if m, ok := b.DB.(clusterMember); ok {
		return m.Failure()
	}
	return false, nil
}
