package testserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// zookeeperJars are the classes of the server as Debian packages them; the first one
// names all others that it needs but for one that prints the log.
var zookeeperJars = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// A ZooKeeperServer is a private ZooKeeper of one member on 127.0.0.1, open to
// everybody. Its methods are not safe for concurrent use, except for Addr.
type ZooKeeperServer struct{ private }

// ZooKeeper starts a server that ends with t.
func ZooKeeper(t TB) *ZooKeeperServer {
	t.Helper()
	s, err := StartZooKeeper()
	return until(t, s, err)
}

// StartZooKeeper starts a server that ends with [ZooKeeperServer.Close].
func StartZooKeeper() (*ZooKeeperServer, error) {
	s := &ZooKeeperServer{}
	return privately(s, &s.private, "leafzk")
}

// Start starts the server after Stop or Kill, on
// the same port and data, and returns when it answers.
func (s *ZooKeeperServer) Start() error {
	return s.startOn(s.run)
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
	return s.proc.await("start zookeeper", s.ping)
}

// configure writes the configuration file. The short tick allows for sessions of one
// second, which would otherwise take four to expire.
func (s *ZooKeeperServer) configure() (string, error) {
	path := filepath.Join(s.Dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=500\nmaxSessionTimeout=40000\nmaxClientCnxns=0\ndataDir=%s\nclientPort=%d\n"+
		"clientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n", filepath.Join(s.Dir, "data"), s.Port)
	return path, os.WriteFile(path, []byte(text), 0o600)
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
