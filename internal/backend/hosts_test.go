package backend_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leaf-id/leaf/internal/backend"
)

func TestCompareHosts(t *testing.T) {
	type parts = map[string]string
	host := func(name string, answer parts, err error) backend.Host {
		return backend.Host{Name: name, Identities: func(context.Context) (map[string]string, error) { return answer, err }}
	}
	down := errors.New("down")
	tests := map[string]struct {
		hosts  []backend.Host
		silent int
		fails  bool
	}{
		"one host":                 {nil, 0, false},
		"alike":                    {[]backend.Host{host("a", parts{"store": "X"}, nil), host("b", parts{"store": "X"}, nil)}, 0, false},
		"one has none yet":         {[]backend.Host{host("a", parts{"store": "X"}, nil), host("b", nil, nil)}, 0, false},
		"one is down":              {[]backend.Host{host("a", nil, down), host("b", parts{"store": "X"}, nil)}, 1, false},
		"two stores":               {[]backend.Host{host("a", parts{"store": "X"}, nil), host("b", parts{"store": "Y"}, nil)}, 0, true},
		"two registries, one down": {[]backend.Host{host("a", nil, down), host("b", parts{"registry": "X"}, nil), host("c", parts{"registry": "Y"}, nil)}, 1, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := &backend.Backend{Hosts: tt.hosts}
			silent, err := b.CompareHosts(t.Context())
			if len(silent) != tt.silent || errors.Is(err, backend.ErrSeveralStores) != tt.fails {
				t.Errorf("silent: %v, error: %v", silent, err)
			}
		})
	}
}
