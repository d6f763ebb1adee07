package testserver

import (
	"net"
	"sync"
)

// Proxy returns an address on 127.0.0.1 until t ends. It has serve handle each connection of a
// client, and closes the connection when serve returns or t ends.
func Proxy(t TB, serve func(client net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start a proxy: %v", err)
	}
	var mu sync.Mutex
	var work sync.WaitGroup
	clients, ended := make(map[net.Conn]bool), false
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			clients[client] = true
			if ended {
				client.Close()
			}
			mu.Unlock()
			work.Go(func() {
				serve(client)
				mu.Lock()
				defer mu.Unlock()
				client.Close()
				delete(clients, client)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		ended = true
		for client := range clients {
			client.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return listener.Addr().String()
}
