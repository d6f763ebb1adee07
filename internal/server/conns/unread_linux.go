package conns

// Sizes of the chunks of an unread.
const (
	smallChunk = 1 << 10
	largeChunk = 64 << 10
)

// An unread is output that the system has not taken yet. It gives memory back as the client reads.
type unread struct {
	chunks [][]byte
	size   int // bytes of output
	memory int // bytes of the chunks
	sent   int // sent bytes of the first chunk
}

// add appends a copy of p.
func (u *unread) add(p []byte) {
	u.size += len(p)
	for len(p) > 0 {
		if n := len(u.chunks); n == 0 || len(u.chunks[n-1]) == cap(u.chunks[n-1]) {
			chunk := make([]byte, 0, min(max(len(p), u.memory, smallChunk), largeChunk))
			u.chunks = append(u.chunks, chunk)
			u.memory += cap(chunk)
		}
		last := &u.chunks[len(u.chunks)-1]
		n := min(len(p), cap(*last)-len(*last))
		*last = append(*last, p[:n]...)
		p = p[n:]
	}
}

// first returns the next output to send.
func (u *unread) first() []byte { return u.chunks[0][u.sent:] }

// drop removes n bytes of first.
func (u *unread) drop(n int) {
	u.size -= n
	u.sent += n
	if u.sent < len(u.chunks[0]) {
		return
	}
	u.memory -= cap(u.chunks[0])
	u.sent = 0
	u.chunks[0] = nil
	if u.chunks = u.chunks[1:]; len(u.chunks) == 0 {
		u.chunks = nil
	}
}
