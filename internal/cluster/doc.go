// Package cluster runs a member of an etcd cluster inside this process, so that several Leaf servers
// keep one replicated store without a database. Package driver/etcd is the store and the registry on
// the client of a [Member].
//
// # What must always hold
//
// A member acknowledges a write for the cluster, so it must not start without the log of its
// acknowledgements. (Three members: two acknowledge 200 while the third is down; one of the two
// restarts with an empty disk under its old ID next to the third; both agree on 100.) Therefore:
//
//   - Only [Create] starts a cluster. It has one member, and a random token that no other cluster has.
//   - A server joins only if an operator added its address ([Admin.Add]). The cluster gives the new
//     member an ID that no member had before, and makes it a learner, which has no vote. The leader
//     promotes it after it has caught up.
//   - An added member starts once with an empty log. The cluster records who took this start, and the
//     directory records it, on disk, before the log exists. Most members confirm, right before the
//     start, that they know of none: the directory may be a copy from before it. No member has a vote
//     before most know of its start. A member without its log never starts again: an operator removes
//     it and adds a new one.
//   - Each member records in the store how far its log reached on its disk. A start is refused if a
//     peer knows of more than the member's log has, as after the return of an older copy of the
//     directory, or if the member knows of more than a running peer's log has. Peers that do not
//     answer decide nothing.
//   - A list of peers tells where to ask, and decides nothing. The log has the members. A directory of
//     another cluster, or of a removed member, is refused.
//   - Peers on other than loopback addresses need mutual TLS: whoever reaches the port of a member
//     without a certificate could write its log.
//
// # Files
//
// A member has one directory:
//
//	member.json   who this member is, and whether it has started
//	lock          locked by the process that uses the directory
//	member/       etcd's log, snapshots and database
//
// # Port
//
// Each member has one port for the others. It serves etcd's own traffic, and below /leaf/v1/ the
// requests of joining servers and of operators.
package cluster
