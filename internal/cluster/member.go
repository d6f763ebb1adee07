package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	"go.etcd.io/etcd/server/v3/features"
	"go.uber.org/zap"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/internal/hint"
)

// ErrListen reports that the port for peers cannot be used.
var ErrListen = errors.New("listen for peers")

// A Member is this process's part of a cluster. It starts with [Member.Start].
type Member struct {
	caller // whose http is set by Start
	id     identity
	client *clientv3.Client

	starting sync.Once
	startErr error
	closing  sync.Once
	disk     *diskWatch
	short    atomic.Bool  // data fill too much of the quota
	copying  atomic.Bool  // the database is being defragmented
	slow     atomic.Int64 // steps of etcd that took too long

	last  uint64              // the index of the last entry in the log at the start
	heard map[types.ID]uint64 // the same of the peers that answered then

	members []*membership.Member // as peers know them before the first start of an added one

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	server *etcdserver.EtcdServer // nil: not started
	failed chan struct{}          // closes with reason
	reason error
	lock   interface{ Close() error }
	port   *http.Server
}

// Open returns the member in a directory. It neither locks nor starts anything. The start fails,
// wrapping [hint.ErrNoMember], if the directory has no member.
func Open(c Config) (*Member, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Member{caller: caller{config: c}, failed: make(chan struct{})}
	if m.id, err = readIdentity(c.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.client, m.disk = m.newClient(), m.newDiskWatch()
	return m, nil
}

// Client returns the client of the store, which is in this process. Its calls fail before the start,
// and while most members do not answer.
func (m *Member) Client() *clientv3.Client { return m.client }

// Token returns the token of the cluster; "" if the directory has no member.
func (m *Member) Token() string { return m.id.Token }

// Ready waits until this member is one of a cluster with a leader.
func (m *Member) Ready(ctx context.Context) error {
	select {
	case <-m.running().ReadyNotify():
		return nil
	case <-m.failed:
		return m.failure()
	case <-ctx.Done():
		return fmt.Errorf("the member of the cluster is not ready: %w", ctx.Err())
	}
}

// Start starts the member, the first time it is called. It does not wait for the other members.
func (m *Member) Start() error {
	m.starting.Do(func() {
		if m.startErr = m.start(); m.startErr != nil {
			m.stop()
			m.startErr = fmt.Errorf("start the member of the cluster: %w", m.startErr)
		}
	})
	return m.startErr
}

func (m *Member) start() (err error) {
	if m.id.Token == "" {
		return fmt.Errorf("%w in %s", hint.ErrNoMember, m.config.Dir)
	}
	founder := m.id.State == stateNew
	listen := m.config.Listen
	if listen == "" {
		listen = m.id.Address
	}
	if !founder {
		if err := m.config.checkTLS(m.id.Address, listen); err != nil {
			return err
		}
	}
	if m.lock, err = lockDir(m.config.Dir); err != nil {
		return err
	}
	caller, err := newCaller(m.config)
	if err != nil {
		return err
	}
	m.http = caller.http
	if err := m.checkLog(); err != nil {
		return err
	}
	var listener net.Listener
	if !founder { // a founder runs for its first writes only, and has no peers yet
		if listener, err = m.listen(listen); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				_ = listener.Close()
			}
		}()
	}
	server, err := m.newServer(founder)
	if err != nil {
		return err
	}
	if err = m.confirm(server); err != nil {
		server.Cleanup()
		return err
	}
	server.Start()
	m.mu.Lock()
	m.server = server
	m.mu.Unlock()
	if listener != nil {
		m.serve(listener)
	}
	m.work.Go(func() { m.watch(server) })
	m.work.Go(func() { every(m.ctx, m.failed, time.Second, func() { m.promote(server) }) })
	m.work.Go(func() { m.upkeep(server) })
	m.work.Go(func() { m.disk.run(m.ctx, m.failed) })
	m.work.Go(func() { m.abdicate(server) })
	m.awaitLeader(server)
	return nil
}

// leaderWait is how long a start waits for a leader: an election takes one to two seconds.
const leaderWait = 3 * time.Second

// awaitLeader spares the first calls of this server an error. Without a leader the start goes on.
func (m *Member) awaitLeader(server *etcdserver.EtcdServer) {
	elected := server.LeaderChangedNotify()
	if server.Leader() != 0 {
		return
	}
	select {
	case <-elected:
	case <-m.failed:
	case <-time.After(leaderWait):
	}
}

func lockDir(dir string) (interface{ Close() error }, error) {
	lock, err := filelock.OpenLocal(filepath.Join(dir, lockFile))
	if errors.Is(err, filelock.ErrInUse) {
		return nil, fmt.Errorf("the directory %s is in use by another process: %w", dir, err)
	}
	return lock, err
}

func (m *Member) listen(addr string) (net.Listener, error) {
	info := m.config.TLS.info()
	listener, err := transport.NewListenerWithOpts(addr, m.config.scheme(), transport.WithTLSInfo(&info),
		transport.WithTimeout(rafthttp.ConnReadTimeout, rafthttp.ConnWriteTimeout))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrListen, err)
	}
	return listener, nil
}

// newServer reads the log, or starts one: the only start of an added member counts from here on. etcd
// stops the calling goroutine if it cannot.
func (m *Member) newServer(founder bool) (*etcdserver.EtcdServer, error) {
	c, err := m.serverConfig(founder)
	if err != nil {
		return nil, err
	}
	added := m.id.State == stateAdded
	if added {
		m.id.State = stateStarted
		if err := m.id.write(m.config.Dir); err != nil {
			return nil, err
		}
	}
	type result struct {
		server *etcdserver.EtcdServer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		server, err := etcdserver.NewServer(c)
		done <- result{server, err}
	}()
	var r result
	select {
	case r = <-done:
	case <-m.failed:
		r.err = m.failure()
	}
	if r.err != nil && added && !hasLog(m.config.Dir) {
		m.id.State = stateAdded // nothing has started
		r.err = errors.Join(r.err, m.id.write(m.config.Dir))
	}
	return r.server, r.err
}

// The settings of etcd that Leaf chooses. The others elect a new leader after a second of silence.
// Nobody reads the history, and a database of counters is small.
const (
	tick          = 100 * time.Millisecond
	electionTicks = 10
	history       = 5 * time.Minute
	defaultQuota  = 2 << 30
	maxMembers    = 9
	bcryptCost    = 10 // etcd asks for it; the cluster has no users
)

func (m *Member) serverConfig(founder bool) (config.ServerConfig, error) {
	log := newLog(m.config.Logger, &m.slow, func(reason error) { m.fail(fmt.Errorf("etcd stopped: %w", reason)) })
	c := config.ServerConfig{
		Name:                        m.id.Address,
		PeerURLs:                    m.id.peerURLs(),
		DataDir:                     m.config.Dir,
		SnapshotCount:               etcdserver.DefaultSnapshotCount,
		SnapshotCatchUpEntries:      etcdserver.DefaultSnapshotCatchUpEntries,
		MaxSnapFiles:                2,
		MaxWALFiles:                 2,
		InitialClusterToken:         m.id.Token,
		NewCluster:                  founder,
		PeerTLSInfo:                 m.config.TLS.info(),
		TickMs:                      uint(tick / time.Millisecond),
		ElectionTicks:               electionTicks,
		InitialElectionTickAdvance:  true,
		AutoCompactionMode:          "periodic",
		AutoCompactionRetention:     history,
		QuotaBackendBytes:           m.config.Quota,
		MaxTxnOps:                   128,
		MaxRequestBytes:             1 << 20,
		WarningApplyDuration:        100 * time.Millisecond,
		WarningUnaryRequestDuration: 300 * time.Millisecond,
		StrictReconfigCheck:         true,
		BcryptCost:                  bcryptCost,
		CompactHashCheckTime:        time.Minute,
		PreVote:                     true,
		DowngradeCheckTime:          5 * time.Second,
		MaxLearners:                 maxMembers,
		V2Deprecation:               config.V2DeprDefault,
		ServerFeatureGate:           features.NewDefaultServerFeatureGate("leaf", zap.NewNop()),
		Metrics:                     "basic",
		Logger:                      log,
	}
	if founder || hasLog(m.config.Dir) {
		c.InitialPeerURLsMap = types.URLsMap{c.Name: c.PeerURLs}
		return c, nil
	}
	c.InitialPeerURLsMap = make(types.URLsMap)
	for _, other := range m.members {
		var err error
		if c.InitialPeerURLsMap[addressOf(other)], err = types.NewURLs(other.PeerURLs); err != nil {
			return c, err
		}
	}
	return c, nil
}

func addressOf(m *membership.Member) string {
	if len(m.PeerURLs) == 0 {
		return m.ID.String()
	}
	urls, err := types.NewURLs(m.PeerURLs[:1])
	if err != nil {
		return m.PeerURLs[0]
	}
	return urls[0].Host
}

// fail notes why this member has ended.
func (m *Member) fail(reason error) {
	if errors.Is(reason, syscall.ENOSPC) {
		reason = fmt.Errorf("%w: %w", hint.ErrDiskFull, reason)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reason == nil && m.ctx.Err() == nil {
		m.reason = reason
		close(m.failed)
		m.config.Logger.Error("this server has left the cluster until it restarts: its stock and its leases go on", "err", reason)
	}
}

func (m *Member) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reason
}

// Failure tells callers why this member has ended; nil: it has not. etcd ends for good when it cannot
// write its log, because it no longer knows what the disk has. Restart: a new process of this server
// brings the member back.
func (m *Member) Failure() (restart bool, err error) {
	switch reason := m.failure(); {
	case reason == nil:
		return false, nil
	case errors.Is(reason, hint.ErrDiskFull):
		return hasRoom(filepath.Join(m.config.Dir, databaseFolder)), hint.ErrDiskFull
	case errors.Is(reason, hint.ErrRemoved):
		return false, hint.ErrRemoved
	}
	return false, hint.ErrMemberEnded
}

// startRoom is the free room that a start needs: etcd reserves 64 MiB for its log.
const startRoom = 80 << 20

func (m *Member) running() *etcdserver.EtcdServer {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.server
}

// watch logs elections, and notices when etcd ends by itself, as it does in a removed member.
func (m *Member) watch(server *etcdserver.EtcdServer) {
	for {
		elected := server.LeaderChangedNotify()
		select {
		case <-m.ctx.Done():
			return
		case <-elected:
			if leader := server.Cluster().Member(server.Leader()); leader != nil {
				m.config.Logger.Info("the cluster has a leader", "address", addressOf(leader), "member", leader.ID.String())
			}
		case <-server.StopNotify():
			if server.IsIDRemoved(uint64(server.MemberID())) {
				m.fail(fmt.Errorf("%w: member %s", hint.ErrRemoved, server.MemberID()))
			}
			m.fail(errors.New("etcd stopped"))
			return
		}
	}
}

// every calls do at each interval, until ctx ends or failed is closed.
func every(ctx context.Context, failed <-chan struct{}, interval time.Duration, do func()) {
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-failed:
			return
		case <-look.C:
			do()
		}
	}
}

// abdicate hands leadership over after this member has failed. etcd has stopped a part of itself then:
// its heartbeats go on, and a leader that applies nothing compacts nothing and lets nobody join.
func (m *Member) abdicate(server *etcdserver.EtcdServer) {
	select {
	case <-m.failed:
	case <-m.ctx.Done():
		return
	}
	every(m.ctx, nil, time.Second, func() {
		if server.Leader() != server.MemberID() {
			return
		}
		ctx, cancel := context.WithTimeout(m.ctx, callTimeout)
		defer cancel()
		for _, heir := range m.otherVoters(ctx) {
			if server.MoveLeader(ctx, uint64(server.MemberID()), uint64(heir.id)) == nil {
				m.config.Logger.Warn("this server has left the cluster and was its leader, so it has handed over", "to", heir.addr)
				return
			}
		}
	})
}

// promote gives learners a vote once they have caught up. Only the leader knows that.
func (m *Member) promote(server *etcdserver.EtcdServer) {
	if server.Leader() != server.MemberID() {
		return
	}
	for _, other := range server.Cluster().Members() {
		if !other.IsLearner || !other.IsStarted() {
			continue
		}
		ctx, cancel := context.WithTimeout(m.ctx, callTimeout)
		if _, err := server.PromoteMember(ctx, uint64(other.ID)); err == nil {
			m.config.Logger.Info("a new member of the cluster has caught up and may vote", "address", addressOf(other), "member", other.ID.String())
		}
		cancel()
	}
}

// Close hands leadership to another member, and stops this one.
func (m *Member) Close() error {
	m.closing.Do(m.stop)
	return nil
}

// stopTimeout is how long etcd may take to stop; a member with a damaged log never does.
const stopTimeout = 10 * time.Second

func (m *Member) stop() {
	m.cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if server := m.running(); server != nil {
			server.Stop()
		}
		m.work.Wait()
	}()
	limit := stopTimeout
	if m.failure() != nil {
		limit = time.Second
	}
	select {
	case <-stopped:
	case <-time.After(limit):
		m.config.Logger.Warn("the member of the cluster did not stop in time", "after", limit)
	}
	if m.port != nil {
		_ = m.port.Close()
	}
	if m.lock != nil {
		_ = m.lock.Close()
	}
}
