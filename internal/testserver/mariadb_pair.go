package testserver

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// MariaDBPairOptions are the options of [MariaDBPair]; nil means all defaults.
type MariaDBPairOptions struct {
	// Timeout bounds the primary's wait for its replica before it continues alone; default 10 s,
	// which is MariaDB's own.
	Timeout time.Duration

	// AfterSync makes the primary wait before it commits rather than after, so that no client sees
	// writes that the replica may lack.
	AfterSync bool
}

// A MariaDBPairServer is a primary server and its replica by semi-synchronous
// replication. The replica is read-only and has server_id 2, the primary 1.
type MariaDBPairServer struct {
	Primary, Replica *MariaDBServer

	servers int // number of servers so far
}

// MariaDBPair starts a primary and its replica, which end with t, and returns when the replica
// confirms the primary's commits.
func MariaDBPair(t TB, opts *MariaDBPairOptions) *MariaDBPairServer {
	t.Helper()
	if opts == nil {
		opts = &MariaDBPairOptions{}
	}
	p, err := startPair(*opts)
	t.Cleanup(p.close)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

func startPair(opts MariaDBPairOptions) (*MariaDBPairServer, error) {
	timeout := opts.Timeout
	if timeout == 0 {
		timeout = 10 * time.Second
	}
	point := "AFTER_COMMIT"
	if opts.AfterSync {
		point = "AFTER_SYNC"
	}
	both := []string{"--log-bin=bin", "--log-slave-updates", "--sync-binlog=1", "--binlog-format=ROW"}
	p := &MariaDBPairServer{servers: 2}
	var errs [2]error
	var wg sync.WaitGroup
	wg.Go(func() {
		p.Primary, errs[0] = StartMariaDB(&MariaDBOptions{Args: append([]string{"--server-id=1",
			"--rpl-semi-sync-master-enabled=1", "--rpl-semi-sync-master-wait-point=" + point,
			fmt.Sprintf("--rpl-semi-sync-master-timeout=%d", timeout.Milliseconds())}, both...)})
	})
	wg.Go(func() {
		p.Replica, errs[1] = StartMariaDB(&MariaDBOptions{Args: append([]string{"--server-id=2",
			"--rpl-semi-sync-slave-enabled=1", readOnly}, both...)})
	})
	wg.Wait()
	err := errors.Join(errs[:]...)
	if err == nil {
		err = p.follow()
	}
	if err == nil {
		err = p.Primary.awaitValue("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'RPL_SEMI_SYNC_MASTER_CLIENTS'", "1")
	}
	return p, err
}

// follow has the replica do all that the primary ever did.
func (p *MariaDBPairServer) follow() error {
	return p.Replica.exec("", fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=%d, MASTER_USER='root', "+
		"MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos", p.Primary.Port), "START SLAVE")
}

func (p *MariaDBPairServer) close() {
	for _, s := range []*MariaDBServer{p.Primary, p.Replica} {
		if s != nil {
			s.Close()
		}
	}
}

// URL names the database on both servers as a store URL.
func (p *MariaDBPairServer) URL(database string) string {
	return fmt.Sprintf("mysql://root@127.0.0.1:%d,127.0.0.1:%d/%s", p.Primary.Port, p.Replica.Port, database)
}

// CatchUp returns when the replica has done all that the primary has committed so far.
func (p *MariaDBPairServer) CatchUp(t TB) {
	t.Helper()
	position, err := p.Primary.value("SELECT @@gtid_binlog_pos")
	if err == nil {
		err = p.Replica.awaitValue("SELECT MASTER_GTID_WAIT('"+position+"', 1)", "0")
	}
	if err != nil {
		t.Fatalf("wait for the replica: %v", err)
	}
}

// Break ends replication: the replica lacks all later commits of the primary.
func (p *MariaDBPairServer) Break(t TB) {
	t.Helper()
	p.Replica.Exec(t, "", "STOP SLAVE IO_THREAD")
}

// AwaitApplied returns when the replica has done all that it has received.
func (p *MariaDBPairServer) AwaitApplied(t TB) {
	t.Helper()
	const idle = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Slave has read all relay log%'"
	if err := p.Replica.awaitValue(idle, "1"); err != nil {
		t.Fatalf("wait for the replica: %v", err)
	}
}

// Promote makes the replica a server of its own that can be written. It does not ask
// whether the primary is dead.
func (p *MariaDBPairServer) Promote(t TB) {
	t.Helper()
	p.Replica.Exec(t, "", "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only = 0")
}

// ReturnReadOnly starts the former primary again, read-only.
func (p *MariaDBPairServer) ReturnReadOnly() error {
	p.Primary.args = append(p.Primary.args, readOnly)
	return p.Primary.Start()
}

const readOnly = "--read-only=1"

// SwitchRoles makes the dead former primary a new replica of the promoted server, and returns when
// it has caught up. To the cluster it is another server: a server skips writes with its own
// identity.
func (p *MariaDBPairServer) SwitchRoles(t TB) {
	t.Helper()
	p.Primary, p.Replica = p.Replica, p.Primary
	p.Primary.args = slices.DeleteFunc(p.Primary.args, func(arg string) bool { return arg == readOnly })
	p.servers++
	p.Replica.args = append(p.Replica.args, readOnly, "--rpl-semi-sync-slave-enabled=1", // the last one counts
		"--rpl-semi-sync-master-enabled=0", fmt.Sprintf("--server-id=%d", p.servers))
	for _, step := range []func() error{p.Replica.Kill, p.Replica.reinstall, p.Replica.Start, p.follow} {
		if err := step(); err != nil {
			t.Fatalf("make a replica of the former primary: %v", err)
		}
	}
	p.CatchUp(t)
}

// reinstall empties the server.
func (s *MariaDBServer) reinstall() error {
	if err := errors.Join(os.RemoveAll(s.data()), os.RemoveAll(s.temp())); err != nil {
		return err
	}
	return s.install()
}

// value returns the only value that a query finds.
func (s *MariaDBServer) value(query string) (value string, err error) {
	db, err := s.open("")
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRow(query).Scan(&value)
	return value, err
}

// awaitValue returns when a query finds want.
func (s *MariaDBServer) awaitValue(query, want string) error {
	return s.proc.await(query, func() error {
		got, err := s.value(query)
		if err == nil && got != want {
			err = fmt.Errorf("%q, want %q", got, want)
		}
		return err
	})
}
