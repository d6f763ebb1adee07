package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
)

// javaEpoch is where Java Leaf counts from, Unix milliseconds.
const javaEpoch = 1288834974657

// A javaNode acts like a server of Java Leaf on the tree, and makes its IDs. It ignores leases.
type javaNode struct {
	tree     *tree
	ip, port string
	worker   int64
	node     string // its path
	last     int64  // the latest millisecond that it has used

	stop func() // ends the uploads
}

// errJavaFallsBack is where Java Leaf gives up on ZooKeeper, and takes the worker ID in
// its local file.
var errJavaFallsBack = errors.New("turns to its local file")

// startJavaNode starts one that ends with the test; between runs after its look for a
// tree.
func startJavaNode(t testing.TB, tr *tree, ip, port string, between func()) *javaNode {
	t.Helper()
	j := &javaNode{tree: tr, ip: ip, port: port}
	var found bool
	until(t, time.Minute, "connected", func() (err error) { found, err = j.poll(); return err })
	if between != nil {
		between()
	}
	if err := j.register(found); err != nil {
		t.Fatal(err)
	}
	j.upload()
	t.Cleanup(j.stop)
	return j
}

func (j *javaNode) poll() (bool, error) {
	exists, _, err := j.tree.conn.Exists(j.tree.path("forever"))
	return exists, err
}

// register gets a worker ID: 0 without a look at the number of the node where there
// was not a tree.
func (j *javaNode) register(found bool) (err error) {
	if !found {
		j.worker = 0
		j.node, err = j.create()
		return err
	}
	names, _, err := j.tree.conn.Children(j.tree.path("forever"))
	if err != nil {
		return err
	}
	own := map[string]string{}
	for _, name := range names {
		parts := strings.Split(name, "-")
		if len(parts) < 2 {
			return fmt.Errorf("%s: %w", name, errJavaFallsBack)
		}
		if _, err := strconv.ParseInt(parts[1], 10, 32); err != nil {
			return fmt.Errorf("%s: %w", name, errJavaFallsBack)
		}
		own[parts[0]] = name
	}
	name, ok := own[j.ip+":"+j.port]
	if !ok {
		if j.node, err = j.create(); err != nil {
			return err
		}
		j.worker = suffix(j.node)
		return nil
	}
	j.node, j.worker = j.tree.path("forever", name), suffix(name)
	return j.checkTime()
}

// suffix returns the worker ID in a path.
func suffix(path string) int64 {
	id, err := strconv.ParseInt(path[strings.LastIndex(path, "-")+1:], 10, 32)
	if err != nil {
		panic(err) // ZooKeeper made it
	}
	return id
}

// checkTime is the look at the node that it found to be its own.
func (j *javaNode) checkTime() error {
	data, _, err := j.tree.conn.Get(j.node)
	if err != nil {
		return err
	}
	var e struct {
		IP        string `json:"ip"`
		Port      string `json:"port"`
		Timestamp int64  `json:"timestamp"`
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return fmt.Errorf("%s: %w: %w", data, errJavaFallsBack, err)
	}
	if e.Timestamp > time.Now().UnixMilli() {
		return fmt.Errorf("%s lies ahead: %w", data, errJavaFallsBack)
	}
	return nil
}

func (j *javaNode) data() []byte {
	return fmt.Appendf(nil, `{"ip":"%s","port":"%s","timestamp":%d}`, j.ip, j.port, time.Now().UnixMilli())
}

func (j *javaNode) create() (string, error) {
	forever := j.tree.path("forever")
	for _, path := range []string{j.tree.chroot + "/snowflake", j.tree.path(), forever} {
		if _, err := j.tree.conn.Create(path, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return "", err
		}
	}
	return j.tree.conn.Create(forever+"/"+j.ip+":"+j.port+"-", j.data(), zk.FlagSequence, zk.WorldACL(zk.PermAll))
}

// upload begins to write the time: after a second, and then every 3 s.
func (j *javaNode) upload() {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		for pause := time.Second; ; pause = 3 * time.Second {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
				_, _ = j.tree.conn.Set(j.node, j.data(), -1) // Java Leaf ignores the error as well
			}
		}
	})
	j.stop = sync.OnceFunc(func() { cancel(); ended.Wait() })
}

// next waits for the clock and returns the IDs of an unused millisecond.
func (j *javaNode) next() leaf.Range {
	now := time.Now().UnixMilli()
	for ; now <= j.last; now = time.Now().UnixMilli() {
		time.Sleep(100 * time.Microsecond)
	}
	j.last = now
	first := (now-javaEpoch)<<22 | j.worker<<12
	return leaf.Range{Start: first + rand.Int64N(100), End: first + 4096}
}

// issue makes it issue along with the clients of l until ctx ends.
func (j *javaNode) issue(ctx context.Context, l *takes) {
	for ctx.Err() == nil {
		l.add(j.next())
	}
}
