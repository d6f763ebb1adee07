package cluster

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/internal/hint"
)

// Prefix begins all keys of the store, before a slash.
const Prefix = "/leaf"

const pathSnapshot = "/leaf/v1/snapshot"

// A Pair is one key of the store, without [Prefix] and its slash.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// A snapshot is lines of JSON: a head, the pairs of one revision, and a tail with the hash of all
// lines before it.
type (
	snapshotHead struct {
		Format   int       `json:"leaf_cluster_snapshot"`
		Token    string    `json:"token"`
		Taken    time.Time `json:"taken"`
		Revision int64     `json:"revision"`
	}
	snapshotTail struct {
		Pairs  int    `json:"pairs"`
		SHA256 string `json:"sha256"`
	}
)

const snapshotFormat = 1

// snapshotPage is how many keys one read of a snapshot returns.
const snapshotPage = 1000

// serveSnapshot writes the keys as most members have agreed on them. A failure cuts the answer off
// before its tail.
func (m *Member) serveSnapshot(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), snapshotTimeout)
	defer cancel()
	from, end := Prefix+"/", clientv3.GetPrefixRangeEnd(Prefix+"/")
	out := &hashedLines{w: bufio.NewWriter(w), hash: sha256.New()}
	pairs, revision := 0, int64(0)
	for {
		page, err := m.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(snapshotPage), clientv3.WithRev(revision))
		if err != nil && revision == 0 {
			writeError(w, quorumError(err))
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if revision == 0 {
			revision = page.Header.Revision
			out.line(snapshotHead{snapshotFormat, m.id.Token, time.Now().UTC(), revision})
		}
		for _, kv := range page.Kvs {
			out.line(Pair{strings.TrimPrefix(string(kv.Key), Prefix+"/"), string(kv.Value)})
			from = string(kv.Key) + "\x00"
			pairs++
		}
		if !page.More {
			break
		}
	}
	out.line(snapshotTail{pairs, hex.EncodeToString(out.hash.Sum(nil))})
	if out.err != nil || out.w.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
}

// snapshotTimeout bounds a snapshot; etcd keeps a revision for longer.
const snapshotTimeout = history / 2

type hashedLines struct {
	w    *bufio.Writer
	hash hash.Hash
	err  error
}

func (h *hashedLines) line(v any) {
	text, err := json.Marshal(v)
	text = append(text, '\n')
	h.hash.Write(text)
	_, err2 := h.w.Write(text)
	h.err = errors.Join(h.err, err, err2)
}

// Snapshot writes the store of the cluster to a new file, and returns the number of its keys.
func (a *Admin) Snapshot(ctx context.Context, file string) (pairs int, err error) {
	if _, err := os.Lstat(file); err == nil {
		return 0, fmt.Errorf("%w: %s", hint.ErrFileExists, file)
	}
	var text []byte
	peer, err := a.first(ctx, http.MethodGet, pathSnapshot, nil, &text)
	if err != nil {
		return 0, err
	}
	all, err := ParseSnapshot(text)
	if err != nil {
		return 0, fmt.Errorf("peer %s: %w", peer, err)
	}
	return len(all), writeNew(file, text)
}

// writeNew writes a file that does not exist, all of it or nothing.
func writeNew(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	switch err := os.Link(f.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %s", hint.ErrFileExists, path)
	case err != nil:
		return err
	}
	return filelock.SyncFolder(filepath.Dir(path))
}

// ParseSnapshot returns the keys of a complete snapshot.
func ParseSnapshot(text []byte) (all []Pair, err error) {
	damaged := errors.New("the snapshot is damaged or incomplete")
	body, last, ok := cutLastLine(text)
	var head snapshotHead
	var tail snapshotTail
	sum := sha256.Sum256(body)
	if !ok || json.Unmarshal(last, &tail) != nil || tail.SHA256 != hex.EncodeToString(sum[:]) {
		return nil, damaged
	}
	first, rest, _ := bytes.Cut(body, []byte("\n"))
	if json.Unmarshal(first, &head) != nil || head.Format < snapshotFormat {
		return nil, damaged
	}
	if head.Format > snapshotFormat {
		return nil, fmt.Errorf("the snapshot has format %d, from a newer release: run that release", head.Format)
	}
	for line := range bytes.Lines(rest) {
		var pair Pair
		if err := json.Unmarshal(line, &pair); err != nil {
			return nil, errors.Join(damaged, err)
		}
		all = append(all, pair)
	}
	if len(all) != tail.Pairs {
		return nil, damaged
	}
	return all, nil
}

// cutLastLine splits text before its last line.
func cutLastLine(text []byte) (before, last []byte, ok bool) {
	text, ok = bytes.CutSuffix(text, []byte("\n"))
	i := bytes.LastIndexByte(text, '\n')
	if !ok || i < 0 {
		return nil, nil, false
	}
	return text[:i+1], text[i+1:], true
}
