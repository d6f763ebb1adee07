package testserver

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// A RedisError is a Redis's error instead of a result.
type RedisError string

func (e RedisError) Error() string { return string(e) }

// Do sends the server one command on a connection of its own and returns the answer as text; of an
// array, one element a line. It fails with a [RedisError] if the server refuses the command.
func (s *RedisServer) Do(args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	return readRedis(bufio.NewReader(conn))
}

func readRedis(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[:1], line[1:]
	switch kind {
	case "+", ":":
		return rest, nil
	case "-":
		return "", RedisError(rest)
	}
	n, err := strconv.Atoi(rest)
	if err != nil {
		return "", fmt.Errorf("redis answered %q", line)
	}
	if kind == "$" {
		text := make([]byte, max(0, n+2))
		if n < 0 {
			return "", nil
		}
		_, err := io.ReadFull(r, text)
		return string(text[:n]), err
	}
	var all []string
	for range n {
		text, err := readRedis(r)
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n"), nil
}
