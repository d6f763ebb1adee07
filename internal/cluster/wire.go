package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/leaf-id/leaf/internal/hint"
)

// The paths of requests between peers, besides etcd's own.
const (
	pathMembers = "/leaf/v1/members"
	pathJoin    = "/leaf/v1/join"
)

// callTimeout bounds a request to a peer; dialTimeout its connection.
const (
	callTimeout = 5 * time.Second
	dialTimeout = 2 * time.Second
)

// A Status is what one member knows about the cluster.
type Status struct {
	Cluster string       `json:"cluster"`
	Token   string       `json:"token"`
	Now     time.Time    `json:"now"`     // by the member's clock
	Member  string       `json:"member"`  // that answered
	Leader  string       `json:"leader"`  // "": none
	Removed bool         `json:"removed"` // the member of the request was removed
	Failed  bool         `json:"failed"`  // the member has left the cluster, and knows nothing new
	Members []MemberInfo `json:"members"`

	LastEntry uint64 `json:"last_entry"` // that its log has, at least
	Recorded  uint64 `json:"recorded"`   // entry that the log of the member of the request has had

	Database Database `json:"database"`     // of the member that answered
	Sync     float64  `json:"sync_seconds"` // the mean of the last syncs of its log; 0: not known
}

// A MemberInfo is one member of a cluster.
type MemberInfo struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	Started bool   `json:"started"` // it has been in the cluster before
	Learner bool   `json:"learner"` // it has no vote yet
	Leader  bool   `json:"leader"`
	Error   string `json:"error,omitempty"` // why it does not answer
}

type joinRequest struct {
	Address string `json:"address"`
	Nonce   string `json:"nonce"`
}

type joinAnswer struct {
	Cluster string `json:"cluster"`
	Token   string `json:"token"`
	ID      string `json:"id"`
}

type addRequest struct {
	Address string `json:"address"`
}

// kinds are the errors that keep their meaning on the wire.
var kinds = map[string]error{
	"not-added": hint.ErrNotAdded,
	"emptied":   hint.ErrEmptied,
	"exists":    hint.ErrMemberExists,
	"unknown":   hint.ErrUnknownMember,
	"quorum":    hint.ErrQuorum,
	"election":  hint.ErrElection,
}

type wireError struct {
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error"`
}

// A peerError is the answer of a peer.
type peerError struct {
	text string
	kind error
}

func (e *peerError) Error() string { return e.text }
func (e *peerError) Unwrap() error { return e.kind }

// A caller sends requests to members.
type caller struct {
	config Config
	http   *http.Client
}

func newCaller(c Config) (caller, error) {
	encryption, err := c.TLS.client()
	return caller{c, &http.Client{Transport: &http.Transport{
		TLSClientConfig:     encryption,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     3 * time.Second, // a member closes idle connections after 5 s
	}}}, err
}

// status asks a member for its status.
func (c caller) status(ctx context.Context, addr string) (status Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return status, c.ask(ctx, http.MethodGet, addr, pathMembers, nil, &status)
}

// ask sends a request to one peer and decodes the answer; a []byte gets the text of it.
func (c caller) ask(ctx context.Context, method, addr, path string, request, answer any) error {
	var body io.Reader
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.config.peerURL(addr)+path, body)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("peer %s: %w", addr, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(addr, resp)
	}
	if text, ok := answer.(*[]byte); ok {
		*text, err = io.ReadAll(resp.Body)
		return err
	}
	return json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(answer)
}

// refusal returns the error in an answer.
func refusal(addr string, resp *http.Response) error {
	var wrong wireError
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&wrong); err != nil || wrong.Error == "" {
		return fmt.Errorf("peer %s answers %s: it is no member of a cluster", addr, resp.Status)
	}
	return &peerError{wrong.Error, kinds[wrong.Kind]}
}

func writeJSON(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // only a caller that has left can miss it
}

func writeError(w http.ResponseWriter, err error) {
	wrong := wireError{Error: err.Error()}
	for kind, target := range kinds {
		if errors.Is(err, target) {
			wrong.Kind = kind
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(wrong)
}
