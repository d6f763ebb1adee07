package drivers_test

import (
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/health"
)

// The member of a URL runs from the first use of its store or registry on.
func TestClusterMemberStartsWithTheFirstUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := cluster.Config{Dir: filepath.Join(t.TempDir(), "cluster"), Peers: []string{addr}, Address: addr}
	err = cluster.Create(c, func(dir string) (time.Duration, error) {
		filled := c
		filled.Dir = dir
		return 0, with(drivers.ClusterURL(filled), func(b *drivers.Backend) error {
			return errors.Join(b.Tags.Init(t.Context(), sample), b.Workers.Init(t.Context()))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Quota = 3 << 30
	for _, use := range []func(*drivers.Backend) error{
		func(b *drivers.Backend) error {
			s, err := b.Store()
			if err == nil {
				_, err = s.Advance(t.Context(), sample.Name, 1)
			}
			return err
		},
		func(b *drivers.Backend) error {
			if figures, ok := b.DB.(interface{ Stats() health.Cluster }); !ok || figures.Stats().Quota != 3<<30 {
				t.Errorf("the quota of %T is not that of the URL", b.DB)
			}
			return b.Workers.Check(t.Context())
		},
	} {
		if err := with(drivers.ClusterURL(c), use); err != nil {
			t.Error(err)
		}
	}
}
