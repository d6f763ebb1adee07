package drivers_test

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// Silent hosts before the primary leave a call the time to reach it.
func TestPostgresSilentFirst(t *testing.T) {
	server := testserver.Postgres(t, nil)
	direct := server.URL(server.NewDatabase(t))
	if err := initStore(t.Context(), direct, sample); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		silent, params string
		least          time.Duration
	}{
		{mute(t) + "," + mute(t), "", 0},
		{mute(t), "&connect_timeout=2", 2 * time.Second}, // the URL has the last word
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // as long as a server allows
		defer cancel()
		start := time.Now()
		_, err := open(t, strings.Replace(direct, u.Host, tt.silent+","+u.Host, 1)+tt.params).Advance(ctx, "order", 1)
		if took := time.Since(start); err != nil || took < tt.least {
			t.Errorf("%q: %v after %v", tt.params, err, took)
		}
	}
}

// mute is the address of a server that accepts connections, by its kernel, and says nothing.
func mute(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
