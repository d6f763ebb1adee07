package cluster_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/cluster"
)

// An added server that has not started takes no part in decisions: a voter would stop the first one.
func TestAddedServerHasNoVote(t *testing.T) {
	t.Parallel()
	all := nodes(t, 2)
	all[0].mustStart(t)
	add(t, all[0], all[1])
	if _, err := all[0].member.Client().Put(t.Context(), "counter", "1"); err != nil {
		t.Errorf("a write after the addition: %v", err)
	}
	status, err := admin(t, all[0]).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range status.Members {
		if m.Learner != (m.Address == all[1].addr) {
			t.Errorf("%s is a learner: %v", m.Address, m.Learner)
		}
	}
}

// The registry's clock is that of the other members. A server without others has no such clock.
func TestClockIsThatOfOthers(t *testing.T) {
	t.Parallel()
	for _, notAlone := range []bool{false, true} {
		n := nodes(t, 1)[0]
		n.config.NotAlone = notAlone
		n.mustStart(t)
		if now, err := n.member.Clock(t.Context()); !now.IsZero() || (err != nil) != notAlone {
			t.Errorf("a server alone, which others reach: %v, tells %v, %v", notAlone, now, err)
		}
	}
	all := nodes(t, 2)
	proxy := skewed(t, all[1].addr, time.Hour)
	all[1].config.Listen, all[1].config.Address, all[1].addr = all[1].addr, proxy, proxy
	grow(t, all)
	now, err := all[0].member.Clock(t.Context())
	if offset := time.Until(now); err != nil || offset < 59*time.Minute || offset > 61*time.Minute {
		t.Errorf("the other member's clock is an hour ahead, got %v: %v", offset, err)
	}
	now, err = all[1].member.Clock(t.Context())
	if offset := time.Until(now); err != nil || offset.Abs() > time.Minute {
		t.Errorf("the other member's clock is right, got %v: %v", offset, err)
	}
	stop(t, all[1])
	if now, err := all[0].member.Clock(t.Context()); err == nil {
		t.Errorf("a server whose only peer is silent tells %v", now)
	}
}

// skewed returns the address of a proxy for a member that tells another time.
func skewed(t *testing.T, addr string, by time.Duration) string {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	proxy.FlushInterval = -1 // etcd's streams never end
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	proxy.ModifyResponse = func(resp *http.Response) error {
		if !strings.HasPrefix(resp.Request.URL.Path, "/leaf/v1/members") || resp.StatusCode != http.StatusOK {
			return nil
		}
		var status cluster.Status
		if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
			return err
		}
		status.Now = status.Now.Add(by)
		text, err := json.Marshal(status)
		resp.Body = io.NopCloser(bytes.NewReader(text))
		resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return err
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.Listener.Addr().String()
}

// A restored cluster waits for leases that its backup does not know.
func TestRestoredClusterWaits(t *testing.T) {
	t.Parallel()
	n := nodes(t, 2)[1]
	err := cluster.Create(n.config, func(dir string) (time.Duration, error) {
		c := n.config
		c.Dir = dir
		m, err := cluster.Open(c)
		if err != nil {
			return 0, err
		}
		defer m.Close()
		return time.Hour, m.Start()
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.start(t); err == nil || !strings.Contains(err.Error(), "the cluster was restored, and may start at") {
		t.Errorf("the start of a restored cluster: %v", err)
	}
}
