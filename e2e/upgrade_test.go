package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// oldFormats are the last commits before a format of the data changed.
var oldFormats = []struct {
	name   string
	commit string
	resp   bool // it has the Redis protocol, whose port is a default
	back   bool // it reads the present release's data
}{
	{"state files of version 1", "9972d42df98b78be0df455f16d96422295a20223", false, false},
	{"marks of counters", "7d43d2e2390393af90052d61157d9e554d4a1100", false, false},
	{"worker records of version 1", "1d3300448c2350607bcf4037990e49a1a288b349", true, false},
	{"no pools of worker IDs", "11bb035ae9bfc1f5fd3afd8b014b465076b83ec1", true, true},
	{"no options of tags", beforeOptions, true, true},
}

const beforeOptions = "c61edfa381415b5473b05348f583a383a91f450a"

// A server continues with the data directory, and the embedded store in it, that an older release
// left, after a stop and after a crash, and no ID comes twice. The older release goes on with what
// this one left, or refuses it.
func TestUpgrade(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for _, old := range oldFormats {
		t.Run(old.name, func(t *testing.T) {
			binary := buildCommit(t, old.commit)
			u := &upgrade{t: t, data: filepath.Join(t.TempDir(), "data"), resp: old.resp}
			u.serve(binary, true).stop()
			u.serve(leafBinary, true).stop()
			u.removeState()
			u.serve(binary, old.back).kill()
			u.serve(leafBinary, true).stop()
			if err := u.seen.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

var oldBuilds = struct {
	mu   sync.Mutex
	done map[string]string // commit to path
}{done: map[string]string{}}

// buildCommit returns the command as it was, which it builds once. It needs the history of the
// repository.
func buildCommit(t *testing.T, commit string) string {
	t.Helper()
	oldBuilds.mu.Lock()
	defer oldBuilds.mu.Unlock()
	if path := oldBuilds.done[commit]; path != "" {
		return path
	}
	const script = `set -e
cd .. && git="git -c safe.directory=*"
$git cat-file -e "$2" 2>/dev/null || $git fetch --quiet --unshallow
rm -rf "$1" && mkdir "$1"
$git archive --output="$1/old.tar" "$2"
mkdir "$1/old" && tar -xf "$1/old.tar" -C "$1/old"
cd "$1/old" && go build -buildvcs=false -trimpath -ldflags='-s -w' -o "$1/leaf-old" ./cmd/leaf`
	dir := filepath.Join(filepath.Dir(leafBinary), commit)
	if out, err := exec.Command("sh", "-c", script, "sh", dir, commit).CombinedOutput(); err != nil {
		t.Fatalf("build commit %s: %v: the test needs the whole history, which a shallow clone gets by 'git fetch --unshallow'\n%s", commit, err, out)
	}
	oldBuilds.done[commit] = filepath.Join(dir, "leaf-old")
	return oldBuilds.done[commit]
}

// An upgrade is a data directory that servers of several releases use in turn.
type upgrade struct {
	t    *testing.T
	data string
	resp bool
	seen drivertest.IDs
}

// serve starts a server and takes IDs from it. Where must is false the server may refuse the data.
func (u *upgrade) serve(binary string, must bool) *server {
	u.t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", freePort(u.t))
	command := []string{"env", "-u", "LEAF_ID_SPACE", "-u", "LEAF_LOG_FORMAT"}
	if !u.resp && binary != leafBinary {
		command = append(command, "-u", "LEAF_RESP")
	}
	s := launch(u.t, append(command, binary, "serve", "--listen", address, "--data", u.data)...)
	u.take(s, "http://"+address+"/api/segment/get/"+sampleTag, must)
	u.take(s, "http://"+address+"/api/snowflake/get/x", must)
	return s
}

// take takes IDs, with some time for the server to start and to get a worker ID.
func (u *upgrade) take(s *server, url string, must bool) {
	u.t.Helper()
	limit := 5 * time.Second
	if must {
		limit = minWait
	}
	shard := u.seen.Shard()
	for begin, n := time.Now(), 0; n < 50; {
		body, err := get(url)
		var id int64
		if err == nil {
			id, err = strconv.ParseInt(strings.TrimSpace(body), 10, 64)
		}
		if err == nil {
			shard.Add(id)
			n++
			continue
		}
		if time.Since(begin) > limit && !must {
			return
		}
		if time.Since(begin) > limit {
			u.t.Fatalf("%s: %v\n%s", url, err, s.output())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// removeState is the first step of the way back in docs/operations.md.
func (u *upgrade) removeState() {
	u.t.Helper()
	files, err := filepath.Glob(filepath.Join(u.data, "worker-*"))
	for _, file := range files {
		if err == nil {
			err = os.Remove(file)
		}
	}
	if err != nil {
		u.t.Fatal(err)
	}
}
