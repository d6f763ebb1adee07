package testserver

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

const (
	redisSentinel = "redis-sentinel"
	// sentinelMaster is the name under which a sentinel knows the primary server.
	sentinelMaster = "leaf"
)

// A RedisPair is a primary Redis, a replica, and a sentinel that exchanges their roles on request.
type RedisPair struct {
	Primary, Replica, Sentinel *RedisServer // as they are at the start, or were at the last Restore
}

// RedisWithReplica starts a pair that ends with t and whose replica has caught up.
func RedisWithReplica(t TB, opts *RedisOptions) *RedisPair {
	t.Helper()
	p := &RedisPair{}
	t.Cleanup(p.close)
	if err := p.start(opts); err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

func (p *RedisPair) start(opts *RedisOptions) (err error) {
	if p.Primary, err = StartRedis(opts); err != nil {
		return err
	}
	quick := [2]string{"repl-diskless-sync-delay", "0"}
	if err := p.Primary.insist("CONFIG", "SET", quick[0], quick[1]); err != nil {
		return err
	}
	port := strconv.Itoa(p.Primary.Port)
	follower := &RedisOptions{Config: [][2]string{quick, {"replicaof", "127.0.0.1 " + port}}}
	if opts != nil {
		follower.Config = append(follower.Config, opts.Config...)
	}
	if p.Replica, err = StartRedis(follower); err != nil {
		return err
	}
	if err := p.Replica.AwaitInfo("replication", "master_link_status:up"); err != nil {
		return err
	}
	if err := p.Primary.AwaitInfo("replication", "state=online"); err != nil {
		return err
	}
	if err := errors.Join(p.Primary.insist("PUBLISH", "leaf", "is the replica sent this?"), p.CatchUp()); err != nil {
		return err
	}
	p.Sentinel, err = startRedis(redisSentinel, [][2]string{
		{"sentinel", "monitor " + sentinelMaster + " 127.0.0.1 " + port + " 1"},
		{"sentinel", "down-after-milliseconds " + sentinelMaster + " " + sentinelNever},
		{"sentinel", "failover-timeout " + sentinelMaster + " 30000"},
	})
	if err != nil {
		return err
	}
	if err := p.Sentinel.insist(sentinelPace...); err != nil {
		return err
	}
	return errors.Join(p.Sentinel.AwaitInfo("sentinel", "status=ok", "slaves=1"), p.Restore())
}

func (p *RedisPair) close() {
	for _, s := range []*RedisServer{p.Sentinel, p.Replica, p.Primary} {
		if s != nil {
			s.Close()
		}
	}
}

// URL names the pair by its sentinel.
func (p *RedisPair) URL() string {
	return "redis+sentinel://" + p.Sentinel.Addr() + "/" + sentinelMaster
}

// sentinelNever is the time in milliseconds after which the sentinel takes a silent server for
// dead. Tests tell it when to fail over: its own decisions on a busy machine would spoil a test. A
// value below a second, after which it first asks a new primary, would make it take each new
// primary for dead at once, and return to the former one, even in the middle of a sync that has
// emptied that one.
const sentinelNever = "3600000"

// sentinelPace makes the sentinel look at servers, and correct a former primary, within a second or
// two instead of ten to twenty. It also prevents a pause of half a minute after two seconds without
// the processor.
var sentinelPace = []string{"SENTINEL", "DEBUG", "INFO-PERIOD", "1000", "PUBLISH-PERIOD", "250", "TILT-TRIGGER", sentinelNever}

// Break makes the replica miss every later write, until [RedisPair.FailOver] or
// [RedisPair.Restore]. It has all earlier ones.
func (p *RedisPair) Break() error {
	if err := p.Restore(); err != nil {
		return err
	}
	err := errors.Join(p.Replica.insist("CONFIG", "SET", "masteruser", "stranger"), p.Replica.insist("CONFIG", "SET", "masterauth", "wrong"),
		p.Replica.insist("CLIENT", "KILL", "TYPE", "master"))
	if err != nil {
		return err
	}
	return p.Primary.AwaitInfo("replication", "connected_slaves:0")
}

// FailOver kills the primary, and returns when the other server is the primary.
func (p *RedisPair) FailOver() error {
	if err := p.Primary.Kill(); err != nil {
		return err
	}
	return p.SwitchOver()
}

// SwitchOver returns when the sentinel has promoted the replica, even an outdated one. Primary
// and Replica stay as they are, until [RedisPair.Restore].
func (p *RedisPair) SwitchOver() error {
	return p.Sentinel.proc.await("fail over", func() error {
		master, err := p.master()
		if err == nil && master != p.Replica {
			_, err = p.Sentinel.Do("SENTINEL", "FAILOVER", sentinelMaster) // an error while it is at it
			err = cmp.Or(err, errors.New("the sentinel names the former primary"))
		}
		return err
	})
}

// Restore starts the stopped servers, and returns when one server is the other's replica, and both
// have all earlier writes, also on disk. The sentinel decides the roles; Primary and Replica follow
// it.
func (p *RedisPair) Restore() error {
	for _, s := range []*RedisServer{p.Primary, p.Replica} {
		if s.proc.ended() {
			if err := s.Start(); err != nil {
				return err
			}
		}
		if err := errors.Join(s.insist("CONFIG", "SET", "masteruser", ""), s.insist("CONFIG", "SET", "masterauth", "")); err != nil {
			return err
		}
	}
	if err := p.Sentinel.proc.await("restore the redis pair", p.restored); err != nil {
		return err
	}
	return p.CatchUp()
}

// CatchUp returns when the replica has all of the primary's writes so far. A replica may look
// connected for a second before the primary sends it anything.
func (p *RedisPair) CatchUp() error {
	wants, err := p.Primary.awaitOffset(0)
	if err == nil {
		_, err = p.Replica.awaitOffset(wants)
	}
	return err
}

// awaitOffset waits for a replication offset of a server, and returns its present one.
func (s *RedisServer) awaitOffset(wants int64) (has int64, err error) {
	err = s.proc.await("wait for the replica", func() error {
		info, err := s.Do("INFO", "replication")
		if err != nil {
			return err
		}
		_, text, _ := strings.Cut(info, "master_repl_offset:")
		if _, err = fmt.Sscan(text, &has); err == nil && has < wants {
			err = fmt.Errorf("it stands at %d, the primary at %d", has, wants)
		}
		return err
	})
	return has, err
}

// master returns the server that the sentinel takes for the primary, once a fail-over is over: it
// names the next one to clients a little earlier.
func (p *RedisPair) master() (*RedisServer, error) {
	info, err := p.Sentinel.Do("INFO", "sentinel")
	for _, s := range []*RedisServer{p.Primary, p.Replica} {
		if strings.Contains(info, "address="+s.Addr()+",") {
			return s, nil
		}
	}
	return nil, cmp.Or(err, errors.New(info))
}

// restoredInfo is the state of two restored servers that both have their data on disk; after a sync
// a replica has it in memory alone.
var restoredInfo = [2][]string{
	{"role:master", "state=online", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"},
	{"role:slave", "master_link_status:up", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"},
}

func (p *RedisPair) restored() error {
	master, err := p.master()
	if err != nil {
		return err
	}
	if master == p.Replica {
		p.Primary, p.Replica = p.Replica, p.Primary
	}
	for i, s := range []*RedisServer{p.Primary, p.Replica} {
		info, err := s.Do("INFO")
		if err != nil {
			return err
		}
		for _, text := range restoredInfo[i] {
			if !strings.Contains(info, text) {
				return fmt.Errorf("no %s in\n%s", text, info)
			}
		}
	}
	return nil
}
