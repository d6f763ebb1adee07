package load

import "testing"

// What plainHead does not fully understand is left to package net/http.
func TestPlainHead(t *testing.T) {
	tests := []struct {
		head         string
		status, size int
		ok           bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 7", 200, 7, true},
		{"HTTP/1.1 503 Service Unavailable\r\ncontent-length:0\r\nRetry-After: 1", 503, 0, true},
		{"HTTP/1.1 200 OK\r\nServer: nginx", 200, -1, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 8", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: -7", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 99999999999", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close", 0, 0, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", 0, 0, false},
		{"HTTP/1.0 200 OK\r\nContent-Length: 7", 0, 0, false},
		{"HTTP/1.1 100 Continue\r\nContent-Length: 7", 0, 0, false},
		{"HTTP/1.1 204 No Content\r\nContent-Length: 0", 0, 0, false},
		{"HTTP/1.1 2x0 OK\r\nContent-Length: 7", 0, 0, false},
		{"+PONG", 0, 0, false},
		{"", 0, 0, false},
	}
	for _, tt := range tests {
		status, size, ok := plainHead([]byte(tt.head))
		if ok != tt.ok || ok && (status != tt.status || size != tt.size) {
			t.Errorf("%q: %d, %d, %v, want %d, %d, %v", tt.head, status, size, ok, tt.status, tt.size, tt.ok)
		}
	}
}
