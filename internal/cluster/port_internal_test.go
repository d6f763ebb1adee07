package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"

	"github.com/leaf-id/leaf/internal/hint"
)

// A change of the members continues after an election, and fails at once for any other reason.
func TestChangeIsRepeatedAfterElection(t *testing.T) { synctest.Test(t, changeIsRepeated) }

func changeIsRepeated(t *testing.T) {
	full := errors.New("full")
	for _, last := range []error{nil, full} {
		results := []error{etcderrors.ErrLeaderChanged, rpctypes.ErrLeaderChanged, rpctypes.ErrNoLeader, etcderrors.ErrUnhealthy, last}
		steps := 0
		err := repeat(t.Context(), func() error { steps++; return results[steps-1] })
		if steps != len(results) || !errors.Is(err, last) {
			t.Errorf("%d steps of %d, %v, want %v", steps, len(results), err, last)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for from, want := range map[error]error{etcderrors.ErrLeaderChanged: hint.ErrElection, etcderrors.ErrNoLeader: hint.ErrQuorum, full: full} {
		err := quorumError(repeat(ended, func() error { return from }))
		if !errors.Is(err, want) || want != full && hint.Of(err) == "" {
			t.Errorf("%v became %v (%s), want %v", from, err, hint.Of(err), want)
		}
	}
}
