package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"

	"github.com/leaf-id/leaf/internal/filelock"
)

// The files of a directory.
const (
	identityFile = "member.json"
	lockFile     = "lock"
	logFolder    = "member/wal"

	databaseFolder = "member/snap"
)

// The states of a member, in order.
const (
	stateNew     = "new"     // of a cluster that has not started yet
	stateJoining = "joining" // the cluster has not answered yet
	stateAdded   = "added"   // the cluster has, and the log does not exist
	stateStarted = "started" // the log may exist, and must exist after the first start
)

// An identity is the content of member.json.
type identity struct {
	Version int      `json:"v"`
	State   string   `json:"state"`
	Address string   `json:"address"` // of this member's port
	TLS     bool     `json:"tls"`     // whether peers reach it with TLS
	Nonce   string   `json:"nonce,omitempty"`
	Token   string   `json:"token,omitempty"` // of the cluster
	Cluster types.ID `json:"cluster,omitempty"`
	ID      types.ID `json:"id,omitempty"`

	// NotBefore is when the first member of a restored cluster may start: holders of worker IDs that
	// the backup does not know have ended by then.
	NotBefore time.Time `json:"not_before,omitzero"`
}

const identityVersion = 1

// readIdentity returns the identity in a directory. Without one the error wraps [fs.ErrNotExist].
func readIdentity(dir string) (identity, error) {
	var id identity
	path := filepath.Join(dir, identityFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(text, &id); err != nil {
		return id, fmt.Errorf("%s is damaged: %w", path, err)
	}
	if id.Version != identityVersion {
		return id, fmt.Errorf("%s has format %d, from a newer release: run that release", path, id.Version)
	}
	return id, nil
}

// write replaces the identity in a directory, durably.
func (id identity) write(dir string) error {
	id.Version = identityVersion
	text, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, identityFile)
	if err := writeSynced(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return filelock.SyncFolder(dir)
}

// peerURLs is how etcd writes the member's address. A founder needs no certificates for its first
// writes, but its peers will.
func (id identity) peerURLs() types.URLs {
	scheme := "http"
	if id.TLS {
		scheme = "https"
	}
	return types.URLs{url.URL{Scheme: scheme, Host: id.Address}}
}

func writeSynced(path string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// hasLog reports whether etcd's log is in a directory.
func hasLog(dir string) bool {
	files, err := filepath.Glob(filepath.Join(dir, logFolder, "*.wal"))
	return err == nil && len(files) > 0
}
