package server_test

import (
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/server"
)

// liveMemory returns the memory of what is in use.
func liveMemory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// Hundreds of clients ask for large answers and do not read them. The server keeps its bound over
// all protocols, and answers others in full.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const clients, perClient, budget = 200, 128 << 10, 8 << 20 // bytes
	const most = budget + clients*perClient
	r := run(t, nil, func(o *server.Options) {
		withRESP(o)
		o.SetUnsent(budget)
	})
	large := func() {
		t.Helper()
		if status, body, err := r.get("/v1/ids/uuid/v4?n=10000&format=text"); status != 200 || len(body) != 10_000*37 || err != nil {
			t.Fatalf("%d, %d bytes, %v", status, len(body), err)
		}
	}
	large()
	before := liveMemory()
	asks := []string{
		getRequest("/api/uuid/get/v4?n=10000"), getRequest("/v1/ids/uuid/v4?n=10000"),
		getRequest("/v1/ids/uuid/v4"), "LEAF.NEXT uuid v4 COUNT 10000\r\n",
	}
	for i, ask := range asks {
		asks[i] = strings.Repeat(ask, 256<<10/len(ask))
	}
	for i := range clients {
		ask := asks[i%len(asks)]
		var conn net.Conn
		if strings.HasPrefix(ask, "LEAF") {
			conn, _ = r.dialRESP(t)
		} else {
			conn = r.dial(t)
		}
		if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(conn, ask) }() // until the server takes no more
	}
	used := 0
	for range 4 { // which has its turn after them
		large()
		used = max(used, liveMemory()-before)
	}
	if used > most {
		t.Errorf("%d clients that do not read take %d MiB", clients, used>>20)
	}
	conn, reader := r.dialRESP(t)
	fmt.Fprint(conn, "INCR order\r\n")
	if got, err := reader.ReadString('\n'); err != nil || got != ":1\r\n" {
		t.Errorf("%q, %v", got, err)
	}
}
