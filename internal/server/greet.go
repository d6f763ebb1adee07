package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Bounds on an HTTP/2 connection, on net/http and on grpc-go.
const (
	maxStreams  = 250 // net/http's own
	maxPrelude  = 8   // frames before the first request
	maxGreeting = maxHeaderBytes + 4096
)

// A greeting decides by a client's first request whether the client speaks gRPC alone. A client may
// wait for the server's SETTINGS first, so the greeting sends them, and removes them from the
// output of the server that takes over.
type greeting struct {
	net.Conn
	read  bytes.Buffer // the input that the next server reads again
	skips bool         // the first written frame
}

// Read implements [net.Conn].
func (g *greeting) Read(p []byte) (int, error) {
	if g.read.Len() > 0 {
		return g.read.Read(p)
	}
	return g.Conn.Read(p)
}

// Write implements [net.Conn]. Servers write their SETTINGS at once.
func (g *greeting) Write(p []byte) (int, error) {
	if !g.skips {
		return g.Conn.Write(p)
	}
	header, err := http2.ReadFrameHeader(bytes.NewReader(p))
	size := 9 + int(header.Length)
	if err != nil || header.Type != http2.FrameSettings || len(p) < size {
		return 0, io.ErrShortWrite
	}
	g.skips = false
	if len(p) == size {
		return size, nil
	}
	n, err := g.Conn.Write(p[size:])
	return size + n, err
}

// CloseWrite lets net/http end a connection without losing its answers.
func (g *greeting) CloseWrite() error {
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// speaksGRPC reports whether the first request is from a gRPC library, which sends no other
// requests. After the preface of HTTP/2 it waits for the request until ctx ends, or limit; without
// one it reports false.
func (g *greeting) speaksGRPC(ctx context.Context, limit time.Duration) bool {
	stopped := make(chan struct{})
	_ = g.SetDeadline(time.Now().Add(readHeaderTimeout)) // fails where the reads do
	release := context.AfterFunc(ctx, func() {
		_ = g.SetReadDeadline(time.Unix(1, 0))
		close(stopped)
	})
	is := g.readPreface() && g.extend(ctx, limit) && g.firstIsGRPC()
	if !release() {
		<-stopped
	}
	_ = g.SetDeadline(time.Time{})
	return is
}

// extend gives the client until limit, unless ctx has ended.
func (g *greeting) extend(ctx context.Context, limit time.Duration) bool {
	_ = g.SetDeadline(time.Now().Add(limit))
	return ctx.Err() == nil // else the deadline may have taken the place of that of the end
}

// readPreface reports whether a client speaks HTTP/2.
func (g *greeting) readPreface() bool {
	in := io.TeeReader(g.Conn, &g.read)
	preface := make([]byte, len(http2.ClientPreface))
	for n := range preface { // nothing is waited for that another protocol does not send
		if _, err := io.ReadFull(in, preface[n:n+1]); err != nil || preface[n] != http2.ClientPreface[n] {
			return false
		}
	}
	return true
}

func (g *greeting) firstIsGRPC() bool {
	in := io.TeeReader(io.LimitReader(g.Conn, maxGreeting), &g.read)
	framer := http2.NewFramer(g.Conn, in)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	framer.MaxHeaderListSize = maxHeaderBytes
	framer.SetMaxReadFrameSize(16 << 10)
	if framer.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: maxStreams},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: maxHeaderBytes}) != nil {
		return false
	}
	g.skips = true
	for range maxPrelude {
		frame, err := framer.ReadFrame()
		if err != nil {
			return false
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return isNativeGRPC(f)
		case *http2.SettingsFrame, *http2.WindowUpdateFrame, *http2.PriorityFrame:
		default: // such as PING, which wants an answer
			return false
		}
	}
	return false
}

// isNativeGRPC reports whether a request is from a gRPC library with a connection of its own. A
// proxy adds headers about its client; it may send other clients' requests too, which are not gRPC.
func isNativeGRPC(f *http2.MetaHeadersFrame) bool {
	content, agent := "", ""
	for _, field := range f.Fields {
		switch name := field.Name; {
		case name == "content-type":
			content = field.Value
		case name == "user-agent":
			agent = field.Value
		case name == "via", name == "forwarded", name == "x-request-id", name == "x-real-ip", strings.HasPrefix(name, "x-forwarded-"):
			return false
		}
	}
	return !f.Truncated && (content == "application/grpc" || content == "application/grpc+proto") &&
		strings.Contains(agent, "grpc-") && !strings.Contains(agent, "connect")
}

// A bounded connection is closed when its client does not read for too long. What grpc-go writes,
// one goroutine does.
type bounded struct {
	net.Conn
	limit time.Duration
	set   time.Time // when the deadline was set
}

// Write implements [net.Conn].
func (c *bounded) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.set) > c.limit/8 { // setting it each time would be felt
		c.set = now
		_ = c.SetWriteDeadline(now.Add(c.limit)) // fails where the write does
	}
	return c.Conn.Write(p)
}
