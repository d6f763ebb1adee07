package server_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/server"
)

// A server whose store stops answering is ready as long as a tag in use has IDs, and always reports
// the problem and a remedy.
func TestReadyWhileTheStoreIsAway(t *testing.T) {
	var away atomic.Bool
	r := run(t, func(c drivertest.Call) (f drivertest.Fault) {
		if away.Load() {
			f.Before = errors.New("dial db.internal: connection refused")
		}
		return f
	}, func(o *server.Options) {
		o.Config.Segment.Wait, o.Config.Segment.CheckInterval = 20*time.Millisecond, 50*time.Millisecond
	})
	until(t, "ready", func() bool { return r.status("/readyz") == 200 })
	until(t, "an ID", func() bool { return r.status("/api/segment/get/order") == 200 })
	r.want(t, "/readyz?verbose", 200, "ok\nscheme segment enabled\n")

	away.Store(true)
	until(t, "degraded", func() bool {
		_, body, err := r.get("/readyz?verbose")
		return err == nil && strings.Contains(body, "store_failing segment: the store is unavailable") && strings.Contains(body, "do: bring the store back")
	})
	if _, body, _ := r.get("/readyz?verbose"); strings.Contains(body, "db.internal") {
		t.Errorf("it names the store's host: %s", body)
	}
	status, err := leafv1connect.NewAdminServiceClient(r.client, "http://"+r.addr).Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil || len(status.GetConditions()) != 1 || status.GetConditions()[0].GetName() != "store_failing" || status.GetConditions()[0].GetAdvice() == "" {
		t.Errorf("Status: %v, %v", status, err)
	}
	until(t, "not ready once there are no IDs", func() bool {
		_, _, err := r.get("/api/segment/get/order")
		return err == nil && r.status("/readyz") == 503
	})
	away.Store(false)
	until(t, "ready again", func() bool { return r.status("/readyz") == 200 })
}

// An endedMember has left its cluster.
type endedMember struct {
	memberDB
	restart bool
	err     error
}

func (m endedMember) Failure() (restart bool, err error) { return m.restart, m.err }

func runEnded(t *testing.T, m endedMember, plan func(drivertest.Call) drivertest.Fault) *running {
	return run(t, plan, func(o *server.Options) {
		m.Closer = o.Store.DB
		o.Store.DB = m
	})
}

// A server that left its cluster because its disk is full names that and a remedy, and lives from stock.
func TestMemberWithFullDisk(t *testing.T) {
	r := runEnded(t, endedMember{err: hint.ErrDiskFull}, nil)
	until(t, "the reason and a remedy", func() bool {
		_, body, err := r.get("/readyz?verbose")
		return err == nil && strings.Contains(body, hint.ErrDiskFull.Error()) && strings.Contains(body, "do: make room on the disk")
	})
	select {
	case <-r.done:
		t.Errorf("it ended: %v", r.err)
	default:
	}
}

// A server ends when a restart brings its member back, or when it can issue no IDs without the member.
func TestMemberEndsTheServer(t *testing.T) {
	for _, m := range []endedMember{{restart: true, err: hint.ErrDiskFull}, {err: hint.ErrMemberEnded}} {
		r := runEnded(t, m, func(drivertest.Call) drivertest.Fault {
			return drivertest.Fault{Before: errors.New("left the cluster")}
		})
		select {
		case <-r.done:
			if !errors.Is(r.err, m.err) {
				t.Errorf("it ended with %v, want %v", r.err, m.err)
			}
			r.err = nil
		case <-time.After(time.Minute):
			t.Errorf("%v: the server goes on", m.err)
		}
	}
}
