package server

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/health"
)

// private are the sections of the configuration without a digest: they differ between servers, and
// may hold secrets, which could be guessed from a digest.
var private = []string{"tls", "log"}

// describe returns the server's version and digests of its configuration, for the record of its
// worker ID, which the operators of the other servers see. Servers of one purpose have equal
// digests.
func (s *Server) describe() string {
	digests := []string{digest("store", backendName(s.opts.Store)), digest("workers", backendName(s.opts.Workers))}
	cfg := reflect.ValueOf(s.cfg)
	for i := range cfg.NumField() {
		name := cfg.Type().Field(i).Tag.Get("yaml")
		if cfg.Field(i).Kind() == reflect.Struct && !slices.Contains(private, name) {
			digests = append(digests, digest(name, cfg.Field(i).Interface()))
		}
	}
	return fmt.Sprintf(" leaf %s config %s", strings.Join(strings.Fields(s.opts.Version), "_"), strings.Join(digests, ","))
}

// lastHealth returns the names of the last known problems, for the record of the server's worker ID.
func (s *Server) lastHealth() string {
	names := s.conditions.Load()
	if names == nil {
		return ""
	}
	return "health " + cmp.Or(*names, "ok")
}

func conditionNames(r health.Report) string {
	var names []string
	for _, c := range r.Conditions {
		if !c.Optional {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ",")
}

func digest(name string, value any) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%+v", value) // a hash takes all
	return fmt.Sprintf("%s=%04x", name, h.Sum32()&0xffff)
}

// backendName returns the URL of b without credentials.
func backendName(b *backend.Backend) string {
	if b == nil {
		return ""
	}
	return b.Name
}
