//go:build !linux

package conns

import "net"

// HasLoops: this system has no event loops.
const HasLoops = false

// A loop is there on Linux only: elsewhere each connection has a goroutine.
type loop struct{}

func (l *loop) post(func()) {}
func (l *loop) quit()       {}

type loopConn struct{ peer }

func (c *loopConn) begin()   {}
func (c *loopConn) release() {}

func (s *Server) startLoops() {}

func (s *Server) newLoopConn(net.Conn) *loopConn { return nil }
