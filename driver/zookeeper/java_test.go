package zookeeper_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// A javaServer treats the tree like a server of Java Leaf, including the defects. Its methods are
// for one goroutine.
type javaServer struct {
	worker int64
	node   string // its path
	stop   func() // ends the uploads
	first  bool   // it found no tree
}

// javaEndpoint is the data of a node; Java Leaf refuses other fields.
type javaEndpoint struct {
	IP        string `json:"ip"`
	Port      string `json:"port"`
	Timestamp int64  `json:"timestamp"`
}

// startJava starts a server that ends with t. It fails t where Java Leaf would turn to
// its local file.
func startJava(t testing.TB, tr *tree, ip, port string) *javaServer {
	t.Helper()
	j, err := newJava(tr, ip, port, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.stop)
	return j
}

// newJava is the start of a server; between runs after the look for a tree.
func newJava(tr *tree, ip, port string, between func()) (*javaServer, error) {
	forever, address := tr.path("forever"), ip+":"+port
	exists, _, err := tr.conn.Exists(forever)
	if err != nil {
		return nil, err
	}
	if between != nil {
		between()
	}
	if !exists {
		node, err := javaCreate(tr, ip, port)
		return (&javaServer{worker: 0, node: node, first: true}).upload(tr, ip, port), err
	}
	names, _, err := tr.conn.Children(forever)
	if err != nil {
		return nil, err
	}
	j := &javaServer{worker: -1}
	for _, name := range names {
		parts := strings.Split(name, "-")
		if len(parts) < 2 {
			return nil, fmt.Errorf("ArrayIndexOutOfBounds: %s", name)
		}
		id, err := strconv.ParseInt(parts[1], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("NumberFormat: %s", name)
		}
		if parts[0] == address {
			j.worker, j.node = id, forever+"/"+name
		}
	}
	if j.worker >= 0 {
		return j.upload(tr, ip, port), javaCheck(tr, j.node)
	}
	if j.node, err = javaCreate(tr, ip, port); err != nil {
		return nil, err
	}
	j.worker, err = strconv.ParseInt(strings.Split(j.node[len(forever):], "-")[1], 10, 32)
	return j.upload(tr, ip, port), err
}

// javaCheck is the look at the node that a server finds to be its own.
func javaCheck(tr *tree, node string) error {
	data, _, err := tr.conn.Get(node)
	if err != nil {
		return err
	}
	var e javaEndpoint
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		return fmt.Errorf("UnrecognizedProperty: %s: %w", data, err)
	}
	if e.Timestamp > time.Now().UnixMilli() {
		return fmt.Errorf("CheckLastTime: %s", data)
	}
	return nil
}

func javaText(ip, port string) []byte {
	return fmt.Appendf(nil, `{"ip":"%s","port":"%s","timestamp":%d}`, ip, port, time.Now().UnixMilli())
}

func javaCreate(tr *tree, ip, port string) (string, error) {
	forever := tr.path("forever")
	if err := mkdirs(tr.conn, len(tr.chroot), forever); err != nil {
		return "", err
	}
	return tr.conn.Create(forever+"/"+ip+":"+port+"-", javaText(ip, port), zk.FlagSequence, zk.WorldACL(zk.PermAll))
}

// upload begins to write the time at the pace of the tests.
func (j *javaServer) upload(tr *tree, ip, port string) *javaServer {
	done := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(upload)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				_, _ = tr.conn.Set(j.node, javaText(ip, port), -1) // Java Leaf continues as well
			case <-done:
				return
			}
		}
	})
	j.stop = sync.OnceFunc(func() { close(done); ended.Wait() })
	return j
}
