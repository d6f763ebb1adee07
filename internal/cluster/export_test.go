package cluster

// Fail ends a member, as the death of a part of etcd does.
func (m *Member) Fail(reason error) { m.fail(reason) }
