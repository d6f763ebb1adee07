package issuer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/worker"
)

// starts is a registry whose worker IDs are used once.
type starts struct {
	*kv.Registry
	list []worker.Start
	err  error
}

func (s *starts) Assign(context.Context, int64) (int64, error) { return 1, nil }
func (s *starts) Discard(int64)                                {}
func (s *starts) Supply() worker.Supply                        { return worker.Supply{Used: int64(len(s.list)), Max: 7} }
func (s *starts) Starts(_ context.Context, n int) ([]worker.Start, error) {
	return s.list[:min(n, len(s.list))], s.err
}

func TestStarts(t *testing.T) {
	r := &starts{Registry: registry(t), list: []worker.Start{{Worker: 2, Host: "h"}, {Worker: 1, Host: "h"}}}
	w := issuer.NewWorkers(r, &keeper{}, nil)
	list, supply, ok, err := w.Starts(t.Context())
	if diff := cmp.Diff(r.list, list); diff != "" || supply != (worker.Supply{Used: 2, Max: 7}) || !ok || err != nil {
		t.Errorf("%+v, %v, %v\n%s", supply, ok, err, diff)
	}
	if _, err := w.Free(t.Context(), 0); !errors.Is(err, leaf.ErrUnsupported) || !strings.Contains(err.Error(), "used for one start") {
		t.Errorf("Free: %v, want ErrUnsupported", err)
	}
	if record, err := r.Load(t.Context(), 0); err != nil || record.Term != 6 {
		t.Errorf("it was freed: %+v, %v", record, err)
	}
	r.err = errors.New("gone")
	if _, _, ok, err := w.Starts(t.Context()); !ok || !errors.Is(err, issuer.ErrRegistry) || !errors.Is(err, r.err) {
		t.Errorf("a registry that is gone: %v, %v", ok, err)
	}
	leases := issuer.NewWorkers(registry(t), nil, nil)
	if _, _, ok, err := leases.Starts(t.Context()); ok || err != nil {
		t.Errorf("leases: %v, %v", ok, err)
	}
	if _, ok := leases.Supply(); ok {
		t.Error("leases are supplied")
	}
}
