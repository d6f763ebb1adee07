package testserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// zookeeperJars are the classes of the server as Debian packages them; the first one
// names all others that it needs but for one that prints the log.
var zookeeperJars = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// A ZooKeeperServer is a private ZooKeeper of one member on 127.0.0.1, open to
// everybody. Its methods are not safe for concurrent use, except for Addr.
type ZooKeeperServer struct {
	Port int
	Dir  string // holds the data

	proc    *process
	started bool
}

// ZooKeeper starts a server that ends with t.
func ZooKeeper(t TB) *ZooKeeperServer {
	t.Helper()
	s, err := StartZooKeeper()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// StartZooKeeper starts a server that ends with [ZooKeeperServer.Close].
func StartZooKeeper() (*ZooKeeperServer, error) {
	dir, err := os.MkdirTemp("", "leafzk")
	if err != nil {
		return nil, fmt.Errorf("start zookeeper: %w", err)
	}
	s := &ZooKeeperServer{Dir: dir}
	if err := s.Start(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Addr is the server's address, as clients take it.
func (s *ZooKeeperServer) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Start starts the server after [ZooKeeperServer.Stop] or [ZooKeeperServer.Kill], on
// the same port and data, and returns when it answers.
func (s *ZooKeeperServer) Start() error {
	return startOn(&s.Port, &s.started, s.run, s.Kill)
}

func (s *ZooKeeperServer) run() error {
	java, err := exec.LookPath("java")
	for _, jar := range zookeeperJars {
		if err == nil {
			_, err = os.Stat(jar)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: install libzookeeper-java and default-jre-headless (make test does it on Debian as root)", err)
	}
	config, err := s.configure()
	if err != nil {
		return fmt.Errorf("start zookeeper: %w", err)
	}
	s.proc, err = start(exec.Command(java, "-Xms64m", "-Xmx2g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", strings.Join(zookeeperJars, ":"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", config))
	if err != nil {
		return fmt.Errorf("start zookeeper: %w", err)
	}
	return s.awaitReady()
}

// configure writes the configuration file. The short tick allows for sessions of one
// second, which would otherwise take four to expire.
func (s *ZooKeeperServer) configure() (string, error) {
	path := filepath.Join(s.Dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=500\nmaxSessionTimeout=40000\nmaxClientCnxns=0\ndataDir=%s\nclientPort=%d\n"+
		"clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n", filepath.Join(s.Dir, "data"), s.Port)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (s *ZooKeeperServer) awaitReady() error {
	deadline := time.After(startTimeout)
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		err := s.ping()
		if err == nil {
			return nil
		}
		select {
		case <-s.proc.done:
			return fmt.Errorf("start zookeeper: it ended\n%s", s.proc.out.tail())
		case <-deadline:
			return fmt.Errorf("start zookeeper: no answer: %w\n%s", err, s.proc.out.tail())
		case <-poll.C:
		}
	}
}

// ping asks the server whether it serves.
func (s *ZooKeeperServer) ping() error {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(answer), "Mode: ") {
		err = fmt.Errorf("it answered %q", answer)
	}
	return err
}

// Stop ends the server in good order and waits for its end.
func (s *ZooKeeperServer) Stop() error { return s.end(syscall.SIGTERM) }

// Kill ends the server at once, as kill -9 does, and waits for its end.
func (s *ZooKeeperServer) Kill() error { return s.end(syscall.SIGKILL) }

// Pause freezes the server: connections stand, nothing answers.
func (s *ZooKeeperServer) Pause() error { return s.proc.pause() }

// Resume ends [ZooKeeperServer.Pause].
func (s *ZooKeeperServer) Resume() error { return s.proc.signal(syscall.SIGCONT) }

func (s *ZooKeeperServer) end(sig syscall.Signal) error {
	if s.proc == nil {
		return nil
	}
	return s.proc.end(sig)
}

// Close ends the server and deletes its data.
func (s *ZooKeeperServer) Close() {
	_ = s.Kill() // the data goes away as well: nothing to save
	_ = os.RemoveAll(s.Dir)
}

// Log returns the end of the server's log.
func (s *ZooKeeperServer) Log() string { return s.proc.out.tail() }
