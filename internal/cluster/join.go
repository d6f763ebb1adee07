package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/internal/hint"
)

// Create creates a cluster of one member in a directory that does not exist. fill gets a folder with
// the member, which may start, and creates the store in it; the directory appears once fill has
// succeeded. The member starts again after the wait that fill returns.
func Create(c Config, fill func(dir string) (wait time.Duration, err error)) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	if err := c.checkTLS(c.Address); err != nil {
		return err
	}
	if _, err := os.Lstat(c.Dir); err == nil {
		if id, err := readIdentity(c.Dir); err == nil && id.State == stateJoining {
			return fmt.Errorf("%w: %s, which has asked to join a cluster and does not know the answer", hint.ErrHasMember, c.Dir)
		}
		return fmt.Errorf("%w: %s", hint.ErrHasMember, c.Dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(c.Dir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, filepath.Base(c.Dir)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // of a failed attempt
	id := identity{State: stateNew, Address: c.Address, TLS: c.TLS.CA != "", Token: rand.Text()}
	if err := id.write(dir); err != nil {
		return err
	}
	wait, err := fill(dir)
	if err != nil {
		return err
	}
	if id, err = readIdentity(dir); err != nil {
		return err
	}
	id.State = stateStarted
	if wait > 0 {
		id.NotBefore = time.Now().Add(wait)
	}
	if err := errors.Join(id.write(dir), filelock.SyncFolder(dir)); err != nil {
		return err
	}
	if err := os.Rename(dir, c.Dir); err != nil {
		return err
	}
	return filelock.SyncFolder(parent)
}

// Await waits until the member in a directory may start.
func Await(ctx context.Context, c Config) error {
	id, err := readIdentity(c.Dir)
	left := time.Until(id.NotBefore)
	if err != nil || left <= 0 {
		return nil // Start reports the error
	}
	c.Logger.Warn("the cluster was restored: this server waits for the end of worker IDs that the backup does not know", "until", id.NotBefore)
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Join takes the start of the member that an operator added at c.Address, unless the directory has a
// member. It asks the peers until one decides, or ctx ends.
func Join(ctx context.Context, c Config) error {
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	id, err := readIdentity(c.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		id = identity{State: stateJoining, Address: c.Address, TLS: c.TLS.CA != "", Nonce: rand.Text()}
	case err != nil:
		return err
	case id.State != stateJoining:
		return nil
	}
	if c.Address == "" {
		return fmt.Errorf("%w in %s, and no address of this server is known, so it cannot join one", hint.ErrNoMember, c.Dir)
	}
	id.Address = c.Address
	if err := c.checkTLS(c.Address); err != nil {
		return err
	}
	if hasLog(c.Dir) {
		return fmt.Errorf("%w: %s has a log, and nothing says whose", hint.ErrEmptied, c.Dir)
	}
	caller, err := newCaller(c)
	if err != nil {
		return err
	}
	defer caller.http.CloseIdleConnections()
	answer, err := caller.takeStart(ctx, func(peer string) (joinAnswer, error) { return caller.joinThrough(ctx, peer, id) })
	if err != nil {
		return fmt.Errorf("join the cluster: %w", err)
	}
	id.State, id.Token = stateAdded, answer.Token
	var err1, err2 error
	id.ID, err1 = types.IDFromString(answer.ID)
	id.Cluster, err2 = types.IDFromString(answer.Cluster)
	return errors.Join(err1, err2, id.write(c.Dir))
}

// takeStart asks peers for the start until one decides.
func (c caller) takeStart(ctx context.Context, ask func(peer string) (joinAnswer, error)) (answer joinAnswer, err error) {
	peers := slices.DeleteFunc(slices.Clone(c.config.Peers), func(p string) bool { return p == c.config.Address })
	if len(peers) == 0 {
		return answer, fmt.Errorf("%w in %s, and no peer is named besides this server", hint.ErrNoMember, c.config.Dir)
	}
	for wait := time.NewTicker(time.Second); ; {
		var failed failures.List
		for _, peer := range peers {
			answer, err := ask(peer)
			if err == nil {
				return answer, nil
			}
			if errors.Is(err, hint.ErrNotAdded) || errors.Is(err, hint.ErrEmptied) {
				return answer, fmt.Errorf("peer %s: %w", peer, err)
			}
			failed = append(failed, err)
		}
		select {
		case <-ctx.Done():
			return answer, fmt.Errorf("no peer has answered: %w", failed)
		case <-wait.C:
		}
	}
}

// joinThrough asks a peer for the start. It writes the nonce first, because the answer may be lost,
// but not before the peer answers at all, and removes it if there is no start to take: what it leaves
// would make [Create] refuse.
func (c caller) joinThrough(ctx context.Context, peer string, id identity) (answer joinAnswer, err error) {
	if err := c.ask(ctx, http.MethodGet, peer, pathMembers, nil, &Status{}); err != nil {
		return answer, err
	}
	dir := c.config.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return answer, err
	}
	if err := id.write(dir); err != nil {
		return answer, err
	}
	answer, err = c.askStart(ctx, peer, id)
	if errors.Is(err, hint.ErrNotAdded) {
		return answer, errors.Join(err, os.Remove(filepath.Join(dir, identityFile)), os.Remove(dir))
	}
	return answer, err
}

func (c caller) askStart(ctx context.Context, peer string, id identity) (answer joinAnswer, err error) {
	return answer, c.ask(ctx, http.MethodPost, peer, pathJoin, joinRequest{id.Address, id.Nonce}, &answer)
}

// checkStart refuses the start of an added member unless it is the first: the directory may be a copy
// from before that. It asks for the start again, because peers that lag know of none.
func (m *Member) checkStart() error {
	if err := m.checkPeers(m.named()); err != nil {
		return err
	}
	members, err := m.askMembers()
	if err != nil {
		return err
	}
	m.members = members
	ctx, cancel := context.WithTimeout(m.ctx, membersTimeout)
	defer cancel()
	answer, err := m.takeStart(ctx, func(peer string) (joinAnswer, error) { return m.askStart(ctx, peer, m.id) })
	if err == nil && answer.ID != m.id.ID.String() {
		return fmt.Errorf("%w: member %s, and member %s has its address", hint.ErrRemoved, m.id.ID, answer.ID)
	}
	return err
}

// checkPeers asks peers whether this member is still of their cluster, and how far its log must reach,
// and notes how far theirs do. Nobody may answer at its own address. Silent peers decide nothing, nor
// does another cluster at an address that only the log names: an operator can correct no log.
func (m *Member) checkPeers(peers []string) error {
	ctx, cancel := context.WithTimeout(m.ctx, dialTimeout)
	defer cancel()
	statuses := make([]Status, len(peers))
	refused := make([]error, len(peers))
	var wg sync.WaitGroup
	for i, peer := range peers {
		wg.Go(func() {
			status := &statuses[i]
			err := m.ask(ctx, http.MethodGet, peer, pathMembers+"?id="+m.id.ID.String(), nil, status)
			switch {
			case err != nil, status.Token != m.id.Token && !slices.Contains(m.named(), peer):
				*status = Status{}
			default:
				refused[i] = m.checkPeer(peer, status)
			}
		})
	}
	wg.Wait()
	for _, status := range statuses {
		if id, err := types.IDFromString(status.Member); err == nil {
			m.heard[id] = status.LastEntry
		}
	}
	return cmp.Or(refused...)
}

// named returns the addresses that the configuration names, and that of this member.
func (m *Member) named() []string {
	if slices.Contains(m.config.Peers, m.id.Address) {
		return m.config.Peers
	}
	return append(slices.Clone(m.config.Peers), m.id.Address)
}

func (m *Member) checkPeer(peer string, status *Status) error {
	switch {
	case status.Token != m.id.Token:
		return fmt.Errorf("%w: peer %s", hint.ErrOtherCluster, peer)
	case status.Removed:
		return fmt.Errorf("%w: member %s, says peer %s", hint.ErrRemoved, m.id.ID, peer)
	case status.Member == m.id.ID.String():
		return fmt.Errorf("%w: member %s answers at %s", hint.ErrRunsElsewhere, m.id.ID, peer)
	case status.Recorded > m.last:
		return rolledBack(m.id.ID, m.last, status.Recorded)
	}
	return nil
}

// membersTimeout is how long a new member waits until its peers know it.
const membersTimeout = 20 * time.Second

// askMembers returns the members, this one included. It waits until all that answer know the same
// ones: etcd compares the list with that of one of them, which may be a new member that lags.
func (m *Member) askMembers() ([]*membership.Member, error) {
	ctx, cancel := context.WithTimeout(m.ctx, membersTimeout)
	defer cancel()
	for look := time.NewTicker(membersTimeout / 100); ; {
		members, err := m.agreedMembers(ctx)
		if err == nil {
			return members, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-look.C:
		}
	}
}

func (m *Member) agreedMembers(ctx context.Context) ([]*membership.Member, error) {
	members, err := m.knownMembers(ctx)
	for _, other := range members {
		if its, err := m.membersOf(ctx, addressOf(other)); err == nil && !slices.Equal(memberIDs(its), memberIDs(members)) {
			return nil, fmt.Errorf("peer %s knows other members than the rest", addressOf(other))
		}
	}
	return members, err
}

// knownMembers returns the members as the first peer knows them that knows this one.
func (m *Member) knownMembers(ctx context.Context) ([]*membership.Member, error) {
	var failed failures.List
	for _, peer := range m.config.Peers {
		members, err := m.membersOf(ctx, peer)
		if err == nil && slices.Contains(memberIDs(members), m.id.ID) {
			return members, nil
		}
		failed = append(failed, cmp.Or(err, fmt.Errorf("peer %s does not know member %s yet", peer, m.id.ID)))
	}
	return nil, cmp.Or(failed.Err(), hint.ErrNotAdded)
}

func (m *Member) membersOf(ctx context.Context, peer string) (members []*membership.Member, err error) {
	if peer == m.id.Address {
		return nil, errors.New("this member does not run yet")
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	status, err := m.status(ctx, peer)
	if err != nil {
		return nil, err
	}
	if status.Failed {
		return nil, fmt.Errorf("peer %s has left the cluster", peer)
	}
	err = m.ask(ctx, http.MethodGet, peer, "/members", nil, &members)
	return members, err
}

func memberIDs(members []*membership.Member) (ids []types.ID) {
	for _, m := range members {
		ids = append(ids, m.ID)
	}
	slices.Sort(ids)
	return ids
}
