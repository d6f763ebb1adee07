package testserver

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// EtcdOptions are the options of [Etcd]; nil means all defaults.
type EtcdOptions struct {
	// Members is the number of members; 0 means 1.
	Members int

	// Cert and Key are files of the certificate that clients are shown; empty: no
	// encryption. With ClientCA clients need a certificate of that authority.
	Cert, Key, ClientCA string

	// UnsafeNoFsync has nothing synced to disk, for tests of other things than durability.
	UnsafeNoFsync bool

	// Args are further arguments of etcd, such as "--quota-backend-bytes=…".
	Args []string
}

// An EtcdCluster is a private etcd on 127.0.0.1, of one member or several. Its methods are not safe
// for concurrent use with each other on the same member, except for Endpoints and URL.
type EtcdCluster struct {
	Dir string // holds the data

	opts    EtcdOptions
	members []*etcdMember
}

type etcdMember struct {
	name                  string
	client, peer, metrics int // ports
	joins                 bool
	proc                  *process
}

// Etcd starts a cluster that ends with t.
func Etcd(t TB, opts *EtcdOptions) *EtcdCluster {
	t.Helper()
	c, err := StartEtcd(opts)
	return until(t, c, err)
}

// StartEtcd starts a cluster that ends with [EtcdCluster.Close].
func StartEtcd(opts *EtcdOptions) (*EtcdCluster, error) {
	if opts == nil {
		opts = &EtcdOptions{}
	}
	var err error
	for range 3 { // a port may be taken between the look for it and the start
		c := &EtcdCluster{opts: *opts}
		if err = c.start(); err == nil {
			return c, nil
		}
		c.Close()
	}
	return nil, err
}

func (c *EtcdCluster) start() (err error) {
	if c.Dir, err = os.MkdirTemp("", "leafetcd"); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	for i := range max(1, c.opts.Members) {
		m := &etcdMember{name: fmt.Sprintf("m%d", i)}
		for _, port := range []*int{&m.client, &m.peer, &m.metrics} {
			if *port, err = FreePort(); err != nil {
				return err
			}
		}
		c.members = append(c.members, m)
	}
	for _, m := range c.members {
		if err := c.run(m); err != nil {
			return err
		}
	}
	return c.each(c.awaitReady)
}

// each makes a call for all members at once.
func (c *EtcdCluster) each(call func(*etcdMember) error) error {
	var wg sync.WaitGroup
	errs := make([]error, len(c.members))
	for i, m := range c.members {
		wg.Go(func() { errs[i] = call(m) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *EtcdCluster) run(m *etcdMember) error {
	binary, err := exec.LookPath("etcd")
	if err != nil {
		return fmt.Errorf("%w: install etcd-server (make test does it on Debian as root)", err)
	}
	if m.proc, err = start(exec.Command(binary, c.args(m)...)); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	return nil
}

func (c *EtcdCluster) args(m *etcdMember) []string {
	var peers []string
	for _, p := range c.members {
		peers = append(peers, p.name+"="+loopback("http", p.peer))
	}
	scheme := "http"
	if c.opts.Cert != "" {
		scheme = "https"
	}
	args := []string{"--name", m.name, "--data-dir", filepath.Join(c.Dir, m.name),
		"--listen-client-urls", loopback(scheme, m.client), "--advertise-client-urls", loopback(scheme, m.client),
		"--listen-peer-urls", loopback("http", m.peer), "--initial-advertise-peer-urls", loopback("http", m.peer),
		"--listen-metrics-urls", loopback("http", m.metrics), "--initial-cluster", strings.Join(peers, ","),
		"--heartbeat-interval", "50", "--election-timeout", "500"}
	if m.joins {
		args = append(args, "--initial-cluster-state", "existing")
	}
	if c.opts.Cert != "" {
		args = append(args, "--cert-file", c.opts.Cert, "--key-file", c.opts.Key)
	}
	if c.opts.ClientCA != "" {
		args = append(args, "--client-cert-auth", "--trusted-ca-file", c.opts.ClientCA)
	}
	if c.opts.UnsafeNoFsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return append(args, c.opts.Args...)
}

func loopback(scheme string, port int) string { return fmt.Sprintf("%s://127.0.0.1:%d", scheme, port) }

func (c *EtcdCluster) awaitReady(m *etcdMember) error {
	return m.proc.await("start etcd", func() error {
		answer, err := m.ask("/health")
		if err == nil && !strings.Contains(answer, `"health":"true"`) {
			err = errors.New("not healthy: " + answer)
		}
		return err
	})
}

// ask gets a page of the server for metrics.
func (m *etcdMember) ask(path string) (string, error) {
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(loopback("http", m.metrics) + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	return string(answer), err
}

// Endpoints returns host:port of each member, as clients take them.
func (c *EtcdCluster) Endpoints() []string {
	all := make([]string, len(c.members))
	for i, m := range c.members {
		all[i] = fmt.Sprintf("127.0.0.1:%d", m.client)
	}
	return all
}

// URL names the keys below a prefix, without its first slash, as a store URL.
func (c *EtcdCluster) URL(prefix string) string {
	return "etcd://" + strings.Join(c.Endpoints(), ",") + "/" + prefix
}

// Leader returns the member that calls itself the leader; -1 without one.
func (c *EtcdCluster) Leader() int {
	for i := range c.members {
		if n, err := c.Metric(i, "etcd_server_is_leader"); err == nil && n == 1 {
			return i
		}
	}
	return -1
}

// Metric returns the sum of a member's metrics whose names, with their labels, begin with prefix.
func (c *EtcdCluster) Metric(i int, prefix string) (float64, error) {
	text, err := c.members[i].ask("/metrics")
	if err != nil {
		return 0, err
	}
	var sum float64
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, prefix) {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(line[strings.LastIndexByte(line, ' ')+1:], &n); err != nil {
			return 0, fmt.Errorf("metric %q: %w", line, err)
		}
		sum += n
	}
	return sum, nil
}

// Kill ends a member at once, as kill -9 does, and waits for its end.
func (c *EtcdCluster) Kill(i int) error { return c.members[i].proc.end(syscall.SIGKILL) }

// Restart starts a member after [EtcdCluster.Kill], on the same ports and data, and
// returns when it takes part again.
func (c *EtcdCluster) Restart(i int) error {
	if err := c.run(c.members[i]); err != nil {
		return err
	}
	return c.awaitReady(c.members[i])
}

// Replace starts a member without the data that it had before [EtcdCluster.Kill], on the
// same ports. The cluster must have been told first that the member it knew is gone and
// that another one joins.
func (c *EtcdCluster) Replace(i int) error {
	m := c.members[i]
	if err := os.RemoveAll(filepath.Join(c.Dir, m.name)); err != nil {
		return fmt.Errorf("replace etcd: %w", err)
	}
	m.joins = true
	return c.Restart(i)
}

// Pause freezes a member: connections stand, nothing answers.
func (c *EtcdCluster) Pause(i int) error { return c.members[i].proc.pause() }

// Resume ends [EtcdCluster.Pause].
func (c *EtcdCluster) Resume(i int) error { return c.members[i].proc.signal(syscall.SIGCONT) }

// Close ends all members and deletes their data.
func (c *EtcdCluster) Close() {
	for i := range c.members {
		_ = c.Kill(i) // the data goes away as well: nothing to save
	}
	_ = os.RemoveAll(c.Dir)
}

// Log returns the end of a member's log.
func (c *EtcdCluster) Log(i int) string { return c.members[i].proc.out.tail() }
