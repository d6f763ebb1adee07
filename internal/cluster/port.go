package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/etcdhttp"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"github.com/leaf-id/leaf/internal/hint"
)

// serve serves the member's port until Close.
func (m *Member) serve(listener net.Listener) {
	server := m.running()
	mux := http.NewServeMux()
	mux.Handle("/", etcdhttp.NewPeerHandler(server.Logger(), server))
	// The read timeout of etcd's listener, five seconds, ends the context of a request.
	own := func(pattern string, do http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			do(w, r.WithContext(context.WithoutCancel(r.Context())))
		})
	}
	own("GET "+pathMembers, m.serveStatus)
	own("POST "+pathMembers, handle(m.add))
	own("DELETE "+pathMembers+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		respond(w, struct{}{}, m.remove(r.Context(), r.PathValue("id")))
	})
	own("POST "+pathJoin, handle(m.join))
	own("GET "+pathSnapshot, m.serveSnapshot)
	own("POST "+pathDefragment, func(w http.ResponseWriter, _ *http.Request) {
		err := m.defragment(server)
		respond(w, m.database(server), err)
	})
	m.port = &http.Server{Handler: mux, ReadTimeout: 5 * time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	m.work.Go(func() {
		if err := m.port.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			m.fail(fmt.Errorf("serve peers: %w", err))
		}
	})
	context.AfterFunc(m.ctx, func() { _ = m.port.Close() })
}

func handle[Q, A any](do func(context.Context, Q) (A, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request Q
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&request); err != nil {
			writeError(w, fmt.Errorf("malformed request: %w", err))
			return
		}
		answer, err := do(r.Context(), request)
		respond(w, answer, err)
	}
}

func respond(w http.ResponseWriter, answer any, err error) {
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, answer)
}

// serveStatus tells what this member knows, without the others.
func (m *Member) serveStatus(w http.ResponseWriter, r *http.Request) {
	server := m.running()
	status := Status{
		Cluster: server.Cluster().ID().String(),
		Token:   m.id.Token,
		Member:  server.MemberID().String(),
		Now:     time.Now(),
		Failed:  m.failure() != nil,

		LastEntry: m.lastEntry(server),
		Database:  m.database(server),
		Sync:      time.Duration(m.disk.mean.Load()).Seconds(),
	}
	if leader := server.Leader(); leader != 0 {
		status.Leader = leader.String()
	}
	if id, err := types.IDFromString(r.FormValue("id")); err == nil {
		status.Removed = server.IsIDRemoved(uint64(id))
		if known, _, err := indexes(r.Context(), server); err == nil {
			status.Recorded = known[id].index
		}
	}
	for _, other := range server.Cluster().Members() {
		status.Members = append(status.Members, MemberInfo{
			ID: other.ID.String(), Address: addressOf(other), Started: other.IsStarted(),
			Learner: other.IsLearner, Leader: other.ID == server.Leader(),
		})
	}
	writeJSON(w, status)
}

// startKey is the record of the one start of an added member with an empty log. It holds "" until a
// server takes the start, then the nonce of that server.
func startKey(id types.ID) string { return "/leaf-cluster/start/" + id.String() }

// changeTimeout bounds a change of the members; etcd refuses one until all have been connected for 5 s.
const changeTimeout = 12 * time.Second

// add adds a learner. Its start is recorded first: without the record no server may take it.
func (m *Member) add(ctx context.Context, r addRequest) (MemberInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	server := m.running()
	if err := repeat(ctx, func() error { return server.LinearizableReadNotify(ctx) }); err != nil {
		return MemberInfo{}, quorumError(err)
	}
	for _, other := range server.Cluster().Members() {
		if addressOf(other) == r.Address {
			return MemberInfo{}, fmt.Errorf("%w: %s is member %s", hint.ErrMemberExists, r.Address, other.ID)
		}
	}
	member := newLearner(server, m.config.peerURLs(r.Address), m.id.Token)
	if err := repeat(ctx, func() error { return m.recordStart(ctx, member.ID) }); err != nil {
		return MemberInfo{}, quorumError(err)
	}
	err := repeat(ctx, func() error {
		_, err := server.AddMember(ctx, *member)
		return err
	})
	if err != nil && !errors.Is(err, membership.ErrIDExists) { // an earlier attempt succeeded after all
		return MemberInfo{}, quorumError(err)
	}
	m.config.Logger.Info("added a member to the cluster", "member", member.ID.String(), "address", r.Address)
	return MemberInfo{ID: member.ID.String(), Address: r.Address, Learner: true}, nil
}

// recordStart records that the start of a member is free. It never frees one that a server has taken.
func (m *Member) recordStart(ctx context.Context, id types.ID) error {
	key := startKey(id)
	_, err := m.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(clientv3.OpPut(key, "")).Commit()
	return err
}

// newLearner returns a member with an ID that no member had. etcd makes IDs of the address and the
// second.
func newLearner(server *etcdserver.EtcdServer, urls types.URLs, token string) *membership.Member {
	for now := time.Now(); ; now = now.Add(time.Second) {
		member := membership.NewMemberAsLearner("", urls, token, &now)
		if !server.IsIDRemoved(uint64(member.ID)) && server.Cluster().Member(member.ID) == nil {
			return member
		}
	}
}

// remove removes the member with an ID or an address.
func (m *Member) remove(ctx context.Context, which string) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	server := m.running()
	if err := repeat(ctx, func() error { return server.LinearizableReadNotify(ctx) }); err != nil {
		return quorumError(err)
	}
	members := server.Cluster().Members()
	for _, other := range members {
		if other.ID.String() != which && addressOf(other) != which {
			continue
		}
		if len(members) == 1 {
			return fmt.Errorf("%w: it is the only member", hint.ErrQuorum)
		}
		err := repeat(ctx, func() error {
			_, err := server.RemoveMember(ctx, uint64(other.ID))
			return err
		})
		if err != nil && !errors.Is(err, membership.ErrIDRemoved) { // an earlier attempt succeeded after all
			return quorumError(err)
		}
		m.config.Logger.Info("removed a member from the cluster", "member", other.ID.String(), "address", addressOf(other))
		return nil
	}
	return fmt.Errorf("%w: %s", hint.ErrUnknownMember, which)
}

// unsettled are the errors that pass once the cluster has a leader and its members are connected.
var unsettled = []error{etcderrors.ErrUnhealthy, etcderrors.ErrNoLeader, etcderrors.ErrLeaderChanged, etcderrors.ErrNotLeader,
	rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged}

// repeat repeats a step of a change while the cluster is unsettled, until ctx ends. The step may have
// succeeded although it failed, so a second time must change nothing.
func repeat(ctx context.Context, step func() error) error {
	for {
		err := step()
		if !isOneOf(err, unsettled) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func isOneOf(err error, targets []error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// quorumError adds the meaning of an error of etcd for a change of the members.
func quorumError(err error) error {
	switch {
	case isOneOf(err, []error{etcderrors.ErrLeaderChanged, etcderrors.ErrNotLeader, rpctypes.ErrLeaderChanged}):
		return fmt.Errorf("%w: %w", hint.ErrElection, err)
	case isOneOf(err, unsettled), isOneOf(err, []error{etcderrors.ErrNotEnoughStartedMembers, etcderrors.ErrTimeout,
		etcderrors.ErrTimeoutDueToLeaderFail, etcderrors.ErrTimeoutDueToConnectionLost, context.DeadlineExceeded}):
		return fmt.Errorf("%w: %w", hint.ErrQuorum, err)
	}
	return err
}

// join gives a server the only start of the member that an operator added at its address. The server
// may ask again until the member has started.
func (m *Member) join(ctx context.Context, r joinRequest) (joinAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	server := m.running()
	if err := server.LinearizableReadNotify(ctx); err != nil {
		return joinAnswer{}, quorumError(err)
	}
	added := memberAt(server, r.Address)
	if added == nil {
		return joinAnswer{}, fmt.Errorf("%w: no member has the address %s", hint.ErrNotAdded, r.Address)
	}
	emptied := fmt.Errorf("%w: member %s at %s has started before", hint.ErrEmptied, added.ID, r.Address)
	if added.IsStarted() {
		return joinAnswer{}, emptied
	}
	key := startKey(added.ID)
	resp, err := m.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(key), ">", 0), clientv3.Compare(clientv3.Value(key), "=", "")).
		Then(clientv3.OpPut(key, r.Nonce)).
		Else(clientv3.OpGet(key)).Commit()
	if err != nil {
		return joinAnswer{}, err
	}
	if !resp.Succeeded {
		kvs := resp.Responses[0].GetResponseRange().GetKvs()
		if len(kvs) == 0 || r.Nonce == "" || string(kvs[0].Value) != r.Nonce {
			return joinAnswer{}, emptied
		}
	}
	return joinAnswer{Cluster: server.Cluster().ID().String(), Token: m.id.Token, ID: added.ID.String()}, nil
}

func memberAt(server *etcdserver.EtcdServer, addr string) *membership.Member {
	for _, other := range server.Cluster().Members() {
		if addressOf(other) == addr {
			return other
		}
	}
	return nil
}
