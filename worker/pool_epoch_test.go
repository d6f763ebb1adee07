package worker

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
)

// A registry that may lose writes without a trace has no pools, and the creation of one says so.
// Where the operator promises that it loses none, it has.
func TestPoolsNeedIncarnation(t *testing.T) {
	for _, tt := range []struct {
		epoch ServerEpoch
		delay time.Duration
		fits  bool
	}{
		{ServerEpoch{Lossy: true}, 0, false},
		{ServerEpoch{Lossy: true}, -1, true},
		{ServerEpoch{Lossy: true, Incarnation: "a"}, 0, true},
		{ServerEpoch{}, 0, true},
	} {
		r := &scripted{}
		p := (&stillClock{wall: now}).pools(t, r)
		p.reg, p.opts.ClaimDelay = epochs{r, tt.epoch, nil}, tt.delay
		other := smallPool
		other.Name = "other"
		for _, pool := range []Pool{smallPool, other} { // the first one exists
			_, err := p.Create(t.Context(), pool)
			refused := errors.Is(err, leaf.ErrUnsupported) && strings.Contains(err.Error(), "use another registry")
			if (err == nil) != tt.fits || !tt.fits && !refused {
				t.Errorf("%+v, delay %v, pool %s: %v", tt.epoch, tt.delay, pool.Name, err)
			}
		}
		if _, err := p.Claim(t.Context(), PoolClaim{Pool: "p"}); errors.Is(err, leaf.ErrUnsupported) == tt.fits {
			t.Errorf("%+v, delay %v: a claim: %v", tt.epoch, tt.delay, err)
		}
	}
}
