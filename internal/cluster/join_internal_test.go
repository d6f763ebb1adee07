package cluster

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/leaf-id/leaf/internal/hint"
)

// A new member waits for a peer that lags: etcd refuses a list that differs from that peer's.
func TestNewMemberWaitsForLaggingPeer(t *testing.T) {
	t.Parallel()
	var servers []*httptest.Server
	var members []*membership.Member
	asked := make([]int, 2)
	for i := range asked {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == pathMembers {
				_ = json.NewEncoder(w).Encode(Status{})
				return
			}
			its := members
			if asked[i]++; i == 1 && asked[i] < 4 {
				its = members[:2]
			}
			_ = json.NewEncoder(w).Encode(its)
		}))
		defer s.Close()
		servers = append(servers, s)
	}
	addrs := []string{servers[0].Listener.Addr().String(), servers[1].Listener.Addr().String(), "127.0.0.1:1"}
	for i, addr := range addrs {
		members = append(members, &membership.Member{ID: types.ID(i + 1), RaftAttributes: membership.RaftAttributes{PeerURLs: []string{"http://" + addr}}})
	}
	m, err := Open(Config{Dir: t.TempDir(), Peers: addrs})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.id.ID, m.id.Address, m.http = 3, addrs[2], http.DefaultClient
	if found, err := m.askMembers(); err != nil || len(found) != 3 || asked[1] < 4 {
		t.Errorf("%d members after %d answers of the peer that lags, %v", len(found), asked[1], err)
	}
}

// Another cluster may have the address of a member that was removed while this one was down.
func TestOtherClusterAtAnUnnamedAddress(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Status{Token: "other", Member: "2", LastEntry: 5})
	}))
	defer s.Close()
	addr := s.Listener.Addr().String()
	for _, named := range []bool{false, true} {
		c := Config{Dir: t.TempDir(), Peers: []string{"127.0.0.1:1"}}
		if named {
			c.Peers = []string{addr}
		}
		m, err := Open(c)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		m.id.Token, m.http, m.heard = "mine", http.DefaultClient, make(map[types.ID]uint64)
		if err := m.checkPeers([]string{addr}); errors.Is(err, hint.ErrOtherCluster) != named || len(m.heard) > 0 != named {
			t.Errorf("named: %v: %v, heard of %v", named, err, m.heard)
		}
	}
}
