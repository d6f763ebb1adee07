package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/testserver"
)

// liveMemory returns the memory in use.
func liveMemory() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}

// Hundreds of clients ask for large answers and do not read them. The server keeps its bound over
// all protocols, and answers others in full.
func TestUnreadAnswersAreBounded(t *testing.T) {
	clients := 64
	if !testing.Short() {
		clients = 200
	}
	const perClient, budget, others = 128 << 10, 8 << 20, 8 << 20 // bytes; others: tests before this one
	most := budget + clients*perClient + others
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
	for range 4 { // it has its turn after them
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

// Clients ask for large messages of gRPC and Connect, on many streams, and do not read them. Others
// get IDs one by one meanwhile, and large messages again when those clients have gone.
func TestUnreadMessagesAreBounded(t *testing.T) {
	const budget, calls, perCall = 8 << 20, 800, 64 << 10 // bytes
	const most = budget + calls*perCall
	r := run(t, nil, func(o *server.Options) {
		withGRPC(o)
		o.SetUnsent(budget)
	})
	take := func() error {
		_, err := leafv1connect.NewLeafServiceClient(r.client, "http://"+r.addr).Take(t.Context(), &leafv1.TakeRequest{Scheme: "uuid", Key: "v4", Count: 10_000})
		return err
	}
	if err := take(); err != nil {
		t.Fatal(err)
	}
	ask := func(contentType string, header ...string) func(net.Conn, int) {
		return func(conn net.Conn, calls int) { takeUnread(conn, calls, append(header, "content-type", contentType)) }
	}
	const conns = 4
	compressed := []string{"grpc-encoding", "gzip", "grpc-accept-encoding", "gzip"}
	for name, tt := range map[string]struct {
		addr   string
		attack func(conn net.Conn, calls int)
	}{
		"gRPC":                     {r.addr, ask("application/grpc")},
		"gRPC, compressed":         {r.addr, ask("application/grpc", compressed...)},
		"port of gRPC":             {r.rpc, ask("application/grpc")},
		"port of gRPC, compressed": {r.rpc, ask("application/grpc", compressed...)},
		"Connect":                  {r.addr, ask("application/json")},
		"Connect, compressed":      {r.addr, ask("application/json", "accept-encoding", "gzip")},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(name, "compressed") {
				testserver.Long(t)
			}
			before := liveMemory()
			var attackers []net.Conn
			for range conns {
				conn := dialTo(t, tt.addr)
				if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
					t.Fatal(err)
				}
				tt.attack(conn, calls/conns)
				attackers = append(attackers, conn)
			}
			used := 0
			for range 50 {
				r.want(t, "/api/uuid/get/v4", 200, "-4")
				used = max(used, liveMemory()-before)
			}
			if used > most {
				t.Errorf("clients that do not read take %d MiB", used>>20)
			}
			for _, conn := range attackers {
				_ = conn.Close()
			}
			until(t, "large messages are made again", func() bool { runtime.GC(); return take() == nil })
		})
	}
}

// takeUnread asks for many UUIDs in calls over HTTP/2, and lets the server send no data.
func takeUnread(conn net.Conn, calls int, header []string) {
	go func() { _, _ = io.Copy(io.Discard, conn) }() // the server's part of the conversation
	fmt.Fprint(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, nil)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	message, _ := proto.Marshal(&leafv1.TakeRequest{Scheme: "uuid", Key: "v4", Count: 10_000})
	message = append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
	if slices.Contains(header, "application/json") {
		message = []byte(`{"scheme":"uuid","key":"v4","count":"10000"}`)
	}
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for i := range calls {
		head.Reset()
		fields := append([]string{":method", "POST", ":scheme", "http", ":authority", "x", ":path", leafv1connect.LeafServiceTakeProcedure, "te", "trailers"}, header...)
		for field := range slices.Chunk(fields, 2) {
			_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer takes all
		}
		id := uint32(2*i + 1)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndHeaders: true})
		_ = framer.WriteData(id, true, message) // the server may have ended the connection
	}
}
