package worker

import (
	"context"
	"errors"
	"testing"
	"time"
)

// A renewal of unknown outcome writes another content the second time, although the limit stays.
func TestRenewWritesAnother(t *testing.T) {
	r := &scripted{}
	p := (&stillClock{wall: now}).pools(t, r)
	held := Record{Worker: firstPool, Instance: Instance{1}, Term: 5, Horizon: now.Add(time.Minute), Floor: now}
	r.put(held)
	r.swap = func(_, next Record) error {
		if len(r.swapped) == 1 {
			r.put(next)
			return errDown
		}
		return nil
	}
	l, err := p.Renew(t.Context(), (&PoolLease{cell: firstPool, secret: Instance{1}}).ID(), time.Second)
	if err != nil || !r.records[firstPool].Horizon.Equal(now.Add(time.Minute+time.Millisecond)) || !l.Limit.Equal(r.records[firstPool].Horizon) {
		t.Errorf("%+v, %v", l, err)
	}
}

// A renewal does not count if the registry cannot tell afterwards which server wrote it.
func TestRenewWithoutServer(t *testing.T) {
	r := &scripted{}
	p := (&stillClock{wall: now}).pools(t, r)
	r.put(Record{Worker: firstPool, Instance: Instance{1}, Term: 5, Horizon: now.Add(time.Minute), Floor: now, Incarnation: "a", Since: now.Add(-time.Hour)})
	swapped := false
	r.swap = func(_, _ Record) error { swapped = true; return nil }
	p.reg = asking{r, func() (ServerEpoch, error) {
		if swapped {
			return ServerEpoch{}, errDown
		}
		return ServerEpoch{Lossy: true, Incarnation: "a"}, nil
	}}
	if l, err := p.Renew(t.Context(), (&PoolLease{cell: firstPool, secret: Instance{1}}).ID(), time.Minute); !errors.Is(err, errDown) {
		t.Errorf("%+v, %v", l, err)
	}
}

// An asking registry asks a function which server answers.
type asking struct {
	*scripted
	server func() (ServerEpoch, error)
}

func (r asking) ServerEpoch(context.Context) (ServerEpoch, error) { return r.server() }
