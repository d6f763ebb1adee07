package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// bareAnswer has the form and the length of Leaf's answer to a request for one ID.
const bareAnswer = "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/plain;charset=UTF-8\r\n" +
	"Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 6\r\n\r\n123456"

// serveBare is two servers that do the least over Go's libraries: a loop over crypto/tls that answers each
// request with the same bytes, and net/http with HTTP/2. It prints their addresses.
func serveBare(files string) error {
	cert, key, _ := strings.Cut(files, ",")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	one, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return err
	}
	two, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(one.Addr(), two.Addr())
	go acceptBare(one)
	return http.ServeTLS(two, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/plain;charset=UTF-8")
		h.Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, "123456") // the client counts its bytes
	}), cert, key)
}

func acceptBare(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go loopBare(conn)
	}
}

// loopBare answers a client that sends one request at a time.
func loopBare(conn net.Conn) {
	defer conn.Close()
	in, answer := make([]byte, 4<<10), []byte(bareAnswer)
	for {
		n, err := conn.Read(in)
		if err == nil && strings.HasSuffix(string(in[:n]), "\r\n\r\n") {
			_, err = conn.Write(answer)
		}
		if err != nil {
			return
		}
	}
}
