package frontend_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

func TestCheckHost(t *testing.T) {
	own, all := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4zero}
	tests := []struct {
		listen net.Addr
		host   string
		ok     bool
	}{
		{own, "localhost:8080", true},
		{own, "LOCALHOST", true},
		{own, "127.0.0.1:8080", true},
		{own, "[::1]", true},
		{own, "rebound.example:8080", false},
		{own, "localhost.rebound.example", false},
		{own, "", false},
		{all, "ids.example", true},
		{nil, "ids.example", true},
	}
	for _, tt := range tests {
		if err := (&frontend.Options{Listen: tt.listen}).CheckHost(&http.Request{Host: tt.host}); (err == nil) != tt.ok {
			t.Errorf("host %q on %v: %v", tt.host, tt.listen, err)
		}
	}
}
