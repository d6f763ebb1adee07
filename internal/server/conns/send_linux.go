package conns

// writeSize is the size of one write of unread output, in bytes.
const writeSize = 256 << 10

// postpone leaves it to the loop to send its replies from there on, if nothing depends on them.
func (c *loopConn) postpone(from int) bool {
	if c.ending || c.eof || c.stopping || c.late || c.leaves() || c.later != nil || c.unread.size > 0 {
		return false
	}
	if to := len(c.loop.out); to > from {
		c.loop.postponed = append(c.loop.postponed, replies{c, from, to})
	}
	return true
}

// sendFrom sends the loop's replies from there on; false: the client has gone.
func (c *loopConn) sendFrom(from int) bool {
	out := c.loop.out[from:]
	c.loop.out = c.loop.out[:from]
	return c.send(out)
}

// send sends replies, and keeps the part that the system does not take; false: the client has gone.
func (c *loopConn) send(out []byte) bool {
	if len(out) == 0 {
		return true
	}
	n := 0
	if c.unread.size == 0 {
		var err error
		if n, err = transmit(c.fd, out); err != nil {
			c.close()
			return false
		}
		if n == len(out) {
			return true
		}
		c.freed = 0
		c.loop.write.set(&c.writing, c.loop.clock())
	}
	c.unread.add(out[n:])
	c.charge()
	return true
}

// charge adjusts the server's budget to the connection's memory.
func (c *loopConn) charge() {
	memory := c.inSize + c.unread.memory
	c.server.opts.Budget.Add(int64(memory - c.charged))
	c.charged = memory
}

// writeMore sends unread output; false: the connection has ended.
func (c *loopConn) writeMore() bool {
	for sent := 0; c.unread.size > 0 && sent < writeSize; {
		n, err := transmit(c.fd, c.unread.first())
		if err != nil {
			c.close()
			return false
		}
		if n == 0 {
			break
		}
		c.unread.drop(n)
		c.freed += n
		sent += n
	}
	c.charge()
	switch {
	case c.unread.size == 0:
		c.writing.clear()
	case c.freed >= piece && !c.server.opts.Budget.Spent(): // else the client has this time for all
		c.freed = 0
		c.loop.write.set(&c.writing, c.loop.clock())
	}
	switch {
	case c.finishing:
		c.finish()
		c.listen()
	case c.leaves() && c.unread.size == 0:
		c.leave()
	case c.held && !c.blocked():
		c.held = false
		c.queue()
		c.listen()
	default:
		c.listen()
	}
	return !c.closed
}
