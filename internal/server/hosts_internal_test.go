package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/backend"
)

// A server compares a host that was down at the start once it answers, and then no more.
func TestHostThatAnswersLate(t *testing.T) {
	for late, told := range map[string]int{"A": 0, "B": 1} {
		var calls int
		b := &backend.Backend{Hosts: []backend.Host{
			{Name: "host-1", Identities: func(context.Context) (map[string]string, error) {
				return map[string]string{"registry": "A"}, nil
			}},
			{Name: "host-2", Identities: func(context.Context) (map[string]string, error) {
				if calls++; calls < 3 {
					return nil, errors.New("no answer")
				}
				return map[string]string{"registry": late}, nil
			}},
		}}
		var log bytes.Buffer
		s := &Server{opts: Options{Workers: b}, log: slog.New(slog.NewTextHandler(&log, nil))}
		if err := s.compareHosts(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			s.compareLate(t.Context())
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != told || calls != 3 {
			t.Errorf("%s: %d errors after %d calls, want %d after 3:\n%s", late, n, calls, told, &log)
		}
	}
}
