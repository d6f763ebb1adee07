package testserver

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// galeraMembers is the smallest cluster that survives any one member.
const galeraMembers = 3

// galeraTransfer is the script for the transfer of missed writes. It replaces the server's own
// ones, which need further programs. Members find it in their PATH.
//
//go:embed galera_transfer.sh
var galeraTransfer []byte

// A GaleraCluster is a private MariaDB Galera cluster of three members on 127.0.0.1. The others
// drop a killed or silent member after about three seconds. Its methods are not safe for concurrent
// use with each other on the same member, except for Member and URL.
type GaleraCluster struct {
	Dir string // holds the data

	binary  string // mariadbd, with the cluster's PATH
	members []*galeraMember
}

type galeraMember struct {
	*MariaDBServer
	group, transfer int      // ports
	settings        []string // its arguments, wherever it stands
}

// Galera starts a cluster that ends with t.
func Galera(t TB) *GaleraCluster {
	t.Helper()
	c, err := StartGalera()
	return until(t, c, err)
}

// StartGalera starts a cluster that ends with [GaleraCluster.Close].
func StartGalera() (*GaleraCluster, error) {
	var err error
	for range 3 { // a port may be taken between the look for it and the start
		c := new(GaleraCluster)
		if err = c.start(); err == nil {
			return c, nil
		}
		c.Close()
	}
	return nil, err
}

func (c *GaleraCluster) start() error {
	for _, step := range []func() error{c.install, c.configure, c.found} {
		if err := step(); err != nil {
			return fmt.Errorf("start galera: %w", err)
		}
	}
	return nil
}

// install makes the folder and the programs of the cluster.
func (c *GaleraCluster) install() error {
	mariadbd, err := find("mariadbd")
	if err != nil {
		return err
	}
	if c.Dir, err = os.MkdirTemp("", "leafgal"); err != nil {
		return err
	}
	c.binary = filepath.Join(c.Dir, "mariadbd")
	wrapper := fmt.Sprintf("#!/bin/sh\nPATH='%s':$PATH exec '%s' \"$@\"\n", c.Dir, mariadbd)
	return errors.Join(os.WriteFile(c.binary, []byte(wrapper), 0o700),
		os.WriteFile(filepath.Join(c.Dir, "wsrep_sst_leaf"), galeraTransfer, 0o700))
}

// configure writes down the arguments of all members, which name each other.
func (c *GaleraCluster) configure() error {
	provider, err := filepath.Glob("/usr/lib*/galera*/libgalera_smm.so")
	if err != nil || len(provider) == 0 {
		return errors.New("find libgalera_smm.so: install galera-4 (make test does it on Debian as root)")
	}
	var peers []string
	for i := range galeraMembers {
		m := &galeraMember{MariaDBServer: &MariaDBServer{private: private{Dir: filepath.Join(c.Dir, fmt.Sprintf("m%d", i))}}}
		for _, port := range []*int{&m.Port, &m.group, &m.transfer} {
			if *port, err = FreePort(); err != nil {
				return err
			}
		}
		c.members = append(c.members, m)
		peers = append(peers, fmt.Sprintf("127.0.0.1:%d", m.group))
	}
	for i, m := range c.members {
		m.settings = []string{"--wsrep-on=ON", "--wsrep-provider=" + provider[0], "--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			"--innodb-flush-log-at-trx-commit=1", "--innodb-log-file-size=16M", "--wsrep-slave-threads=1",
			"--wsrep-cluster-name=leaf", "--wsrep-cluster-address=gcomm://" + strings.Join(peers, ","),
			fmt.Sprintf("--wsrep-node-name=m%d", i), "--wsrep-node-address=" + peers[i],
			"--wsrep-sst-method=leaf", fmt.Sprintf("--wsrep-sst-receive-address=127.0.0.1:%d", m.transfer),
			"--wsrep-provider-options=" + m.providerOptions()}
	}
	return nil
}

// providerOptions make the others drop a vanished member within a few seconds, but not a slow one
// on a busy machine.
func (m *galeraMember) providerOptions() string {
	return fmt.Sprintf("gmcast.listen_addr=tcp://127.0.0.1:%d;base_host=127.0.0.1;base_port=%d;"+
		"ist.recv_addr=127.0.0.1:%d;ist.recv_bind=127.0.0.1:%d;gcache.size=16M;pc.recovery=false;"+
		"evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S;evs.install_timeout=PT4S",
		m.group, m.group, m.transfer, m.transfer)
}

const (
	nowhere    = "00000000-0000-0000-0000-000000000000:-1" // the position of a member without a cluster
	newCluster = "--wsrep-new-cluster"                     // has a member begin without the others
)

// found starts all members with copies of the first one's data, which saves the others a full
// transfer.
func (c *GaleraCluster) found() error {
	first := c.members[0]
	if err := os.Mkdir(first.Dir, 0o700); err != nil {
		return err
	}
	if err := first.install(); err != nil {
		return err
	}
	if err := c.run(0, nowhere, newCluster); err != nil {
		return err
	}
	if err := first.Stop(); err != nil {
		return err
	}
	for _, m := range c.members[1:] {
		if err := os.CopyFS(m.Dir, os.DirFS(first.Dir)); err != nil {
			return err
		}
	}
	position, err := c.recover(0)
	if err != nil {
		return err
	}
	if err := c.run(0, position, newCluster); err != nil {
		return err
	}
	for i := range galeraMembers - 1 {
		if err := c.run(i+1, position); err != nil {
			return err
		}
	}
	return c.AwaitSize(0, galeraMembers)
}

// run starts a member from its last position and returns when it takes part.
func (c *GaleraCluster) run(i int, position string, more ...string) error {
	m := c.members[i]
	m.args = slices.Concat(m.settings, []string{"--wsrep-start-position=" + position}, more)
	if err := m.run(c.binary); err != nil {
		return err
	}
	return m.await("wsrep_local_state_comment", "Synced")
}

// await returns when a status variable of the member has a value, and the member knows all earlier
// writes of the cluster: a resumed member does not know at once that the others dropped it.
func (m *galeraMember) await(variable, want string) error {
	db, err := m.open("")
	if err != nil {
		return err
	}
	defer db.Close()
	return m.proc.await("galera member", func() error {
		value, err := m.status(db, variable)
		if err == nil && value != want {
			err = fmt.Errorf("%s is %q, not %q", variable, value, want)
		}
		return err
	})
}

func (m *galeraMember) status(db *sql.DB, variable string) (value string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err = db.QueryRowContext(ctx, "SET STATEMENT wsrep_sync_wait = 1 FOR SELECT variable_value FROM information_schema.global_status "+
		"WHERE variable_name = '"+variable+"'").Scan(&value)
	return value, err
}

// Member returns a member, to name it in a URL and to run statements on it. It must
// not be stopped and started but by the cluster.
func (c *GaleraCluster) Member(i int) *MariaDBServer { return c.members[i].MariaDBServer }

// URL names the database as a store URL of all members, beginning with member first.
func (c *GaleraCluster) URL(database string, first int) string {
	hosts := make([]string, len(c.members))
	for i := range hosts {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", c.members[(first+i)%len(hosts)].Port)
	}
	return "mysql://root@" + strings.Join(hosts, ",") + "/" + database
}

// Kill ends a member at once, as kill -9 does, and waits for its end.
func (c *GaleraCluster) Kill(i int) error { return c.members[i].Kill() }

var recovered = regexp.MustCompile(`Recovered position: (\S+)`)

// Restart starts a member after [GaleraCluster.Kill], on the same ports and data, and
// returns when it has caught up. At least one member must have run meanwhile.
func (c *GaleraCluster) Restart(i int) error {
	position, err := c.recover(i)
	if err != nil {
		return err
	}
	if err := c.awaitDropped(i); err != nil {
		return err
	}
	return c.run(i, position)
}

// awaitDropped returns when the others have dropped a killed member. One that rejoins earlier may
// wait for a view of the cluster that never comes, and end.
func (c *GaleraCluster) awaitDropped(i int) error {
	witness, running := i, 0
	for j, m := range c.members {
		if j != i && !m.proc.ended() {
			witness, running = j, running+1
		}
	}
	return c.AwaitSize(witness, running)
}

// recover returns the position of a stopped member.
func (c *GaleraCluster) recover(i int) (position string, err error) {
	m := c.members[i]
	args := []string{"--no-defaults", "--datadir=" + m.data(), "--socket=" + m.Socket(), "--skip-networking", "--wsrep-recover"}
	proc, err := start(exec.Command(c.binary, slices.Concat(args, asRoot(), m.settings)...))
	if err != nil {
		return "", fmt.Errorf("recover galera member: %w", err)
	}
	select {
	case <-proc.done:
	case <-time.After(startTimeout):
		return "", errors.Join(errors.New("recover galera member: it did not end"), proc.end(syscall.SIGKILL))
	}
	found := recovered.FindStringSubmatch(proc.out.tail())
	if found == nil {
		return "", fmt.Errorf("recover galera member: it names no position\n%s", proc.out.tail())
	}
	return found[1], nil
}

// Pause freezes a member: connections stand, nothing answers, and the others drop it.
func (c *GaleraCluster) Pause(i int) error { return c.members[i].Pause() }

// Resume ends [GaleraCluster.Pause] and returns when the member takes part again.
func (c *GaleraCluster) Resume(i int) error {
	if err := c.members[i].Resume(); err != nil {
		return err
	}
	return c.members[i].await("wsrep_local_state_comment", "Synced")
}

// AwaitSize returns when the member sees a cluster of n members.
func (c *GaleraCluster) AwaitSize(i, n int) error {
	return c.members[i].await("wsrep_cluster_size", fmt.Sprint(n))
}

// CatchUp returns when all members have done what any of them has committed so far.
func (c *GaleraCluster) CatchUp(t TB) {
	t.Helper()
	for i, m := range c.members {
		if err := m.await("wsrep_local_state_comment", "Synced"); err != nil {
			t.Fatalf("wait for member %d: %v", i, err)
		}
	}
}

// Close ends all members and deletes their data.
func (c *GaleraCluster) Close() {
	for _, m := range c.members {
		m.Close()
	}
	_ = os.RemoveAll(c.Dir)
}
