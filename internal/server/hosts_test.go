package server_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/server"
)

// A server does not start with a URL whose hosts belong to two stores, and names an absent host.
func TestHostsOfTwoStoresAtTheStart(t *testing.T) {
	hosts := func(identities ...string) (all []backend.Host) {
		for _, identity := range identities {
			all = append(all, backend.Host{Name: "host-" + identity, Identities: func(context.Context) (map[string]string, error) {
				if identity == "down" {
					return nil, errors.New("no answer")
				}
				return map[string]string{"store": identity}, nil
			}})
		}
		return all
	}
	store := storeBackend(memory.New().Store())
	store.Hosts = hosts("A", "down", "B")
	if _, err := server.New(t.Context(), server.Options{Config: segmentOnly(t), Store: store, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, backend.ErrSeveralStores) {
		t.Errorf("two stores: %v", err)
	}
	r := run(t, nil, func(o *server.Options) { o.Store.Hosts = hosts("A", "down", "A") })
	if text := r.log.String(); !strings.Contains(text, "host-down: no answer") || strings.Contains(text, "host-A") {
		t.Errorf("the log does not name the one host that is down:\n%s", text)
	}
}
