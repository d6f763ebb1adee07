package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// slowLimit is when servers with a good disk allocate again at the latest while others are slow or
// full. They have a leader three seconds after theirs is lost, and a slow one may come back a few times.
const slowLimit = time.Minute

// handOverLimit is when a leader with a slow disk no longer leads.
const handOverLimit = 3 * time.Minute

// fullDisk is in the log of a server whose disk is full.
const fullDisk = "no space left on device"

var slowFaults = []memberFault{
	{"the leader's disk slow", (*memberSet).hasDisks, (*memberSet).slowLeader},
	{"a follower's disk slow", (*memberSet).hasDisks, (*memberSet).slowFollower},
	{"all disks a little slow", (*memberSet).hasDisks, (*memberSet).slowAll},
	{"the leader's disk full", (*memberSet).hasDisks, (*memberSet).fillLeader},
	{"a follower's disk full", (*memberSet).hasDisks, (*memberSet).fillFollower},
	{"links slow", (*memberSet).hasHosts, (*memberSet).slowLinks},
	{"links lose frames", (*memberSet).hasHosts, (*memberSet).lossyLinks},
}

func (m *memberSet) hasHosts() error {
	if m.lan == nil {
		return errors.New("no network namespace can be made")
	}
	return nil
}

func (m *memberSet) hasDisks() error {
	if m.servers[0].disk == nil {
		return errors.New("no disk can be mounted")
	}
	return nil
}

// A disk is a file system of its own over a temporary folder. The test can slow it down and fill it.
type disk struct {
	dir   string       // where it is mounted
	below string       // the folder, for this process
	sync  atomic.Int64 // extra time of each sync
	full  atomic.Bool  // it refuses all writes
}

// useDisk has the member keep its log and its database on its disk. The rest of the data is elsewhere:
// a server refuses file locks on a disk like this one.
func (s *memberServer) useDisk() error {
	member := filepath.Join(s.data, "cluster", "member")
	info, err := os.Lstat(member)
	if s.disk == nil || err == nil && info.Mode().Type() == os.ModeSymlink {
		return nil
	}
	dir, err2 := os.MkdirTemp(s.disk.below, "member")
	if err == nil {
		_, err = exec.Command("cp", "-a", member+"/.", dir).CombinedOutput()
	} else {
		err = os.MkdirAll(filepath.Dir(member), 0o700)
	}
	return errors.Join(err, err2, os.RemoveAll(member), os.Symlink(filepath.Join(s.disk.dir, filepath.Base(dir)), member))
}

// slowDisks has each sync of some disks take longer until the servers that should have allocated.
func (m *memberSet) slowDisks(sync time.Duration, slow, servers []*memberServer) {
	m.t.Helper()
	setSync(sync, slow...)
	m.awaitSoon(servers...)
	setSync(0, slow...)
}

func setSync(sync time.Duration, servers ...*memberServer) {
	for _, s := range servers {
		s.disk.sync.Store(int64(sync))
	}
}

// slowLeader also requires in the lab that another member leads in the end. If none is elected, the
// leader hands over after three slow rounds, but not soon after an election: too long for the short form.
func (m *memberSet) slowLeader() {
	leader, others := m.leader()
	setSync(1500*time.Millisecond, leader)
	m.awaitSoon(others...)
	if lab() {
		begin := time.Now()
		until(m.t, handOverLimit, "another leader than "+leader.name, func() error {
			if now, _ := m.leader(); now == leader {
				return fmt.Errorf("its disk is slow, and it leads after %v", time.Since(begin))
			}
			return nil
		})
		m.t.Logf("another leader after %v", time.Since(begin).Round(time.Millisecond))
	}
	setSync(0, leader)
}

func (m *memberSet) slowFollower() {
	leader, others := m.leader()
	m.slowDisks(1500*time.Millisecond, others[:1], append(others[1:], leader))
}

func (m *memberSet) slowAll() { m.slowDisks(50*time.Millisecond, m.servers, m.servers) }

// awaitSoon is await within slowLimit.
func (m *memberSet) awaitSoon(servers ...*memberServer) {
	m.t.Helper()
	took := m.await(servers...)
	m.t.Logf("allocations meanwhile after %v", took.Round(time.Millisecond))
	if took > slowLimit {
		m.t.Errorf("allocations meanwhile after %v", took)
	}
}

func (m *memberSet) fillLeader() {
	leader, others := m.leader()
	m.fill(leader, others)
}

func (m *memberSet) fillFollower() {
	leader, others := m.leader()
	m.fill(others[0], append(others[1:], leader))
}

// fill fills a member's disk. Its server lives from stock and reports the reason, while the others
// allocate. With room again it ends, as only a restart brings it back.
func (m *memberSet) fill(s *memberServer, others []*memberServer) {
	m.t.Helper()
	m.fromStock([]*memberServer{s}, func() { s.disk.full.Store(true) })
	m.awaitSoon(others...)
	until(m.t, time.Minute, "a report of the full disk", func() error {
		if m.allocate(s) == nil {
			return errors.New("the server allocates")
		}
		_, err := get(s.now.Load().url + "/readyz")
		if out := s.now.Load().output(); err == nil || !strings.Contains(err.Error(), "the disk of this server is full") || !strings.Contains(out, fullDisk) {
			return fmt.Errorf("the server is ready, or does not report it: %w\n%s", err, out)
		}
		return nil
	})
	s.disk.full.Store(false)
	until(m.t, time.Minute, "the end of the server", func() error {
		if s.now.Load().running() == nil {
			return errors.New("it goes on")
		}
		return nil
	})
	m.launch(s)
}

// slowLinks has an answer of another host take 50 ms, as between regions. At 200 ms a server that draws
// from the tag of a busy leader can lose every swap for minutes.
func (m *memberSet) slowLinks() { m.badLinks(25*time.Millisecond, 0) }

// lossyLinks loses so many frames that connections stall for seconds.
func (m *memberSet) lossyLinks() { m.badLinks(0, 0.05+figure(0.05, 0.15)*rand.Float64()) }

func (m *memberSet) badLinks(delay time.Duration, loss float64) {
	m.t.Helper()
	var cables []string
	for _, s := range m.servers {
		cables = append(cables, s.plug())
		m.must(m.unplug(s))
	}
	r, err := startRelay(m.lan, cables, delay, loss)
	m.must(err)
	m.t.Logf("links have %v of delay and lose %.0f %% of the frames", delay, 100*loss)
	m.t.Logf("allocations meanwhile after %v", m.await(m.servers...).Round(time.Millisecond))
	r.stop()
	for _, s := range m.servers {
		m.must(m.plugIn(s))
	}
}
