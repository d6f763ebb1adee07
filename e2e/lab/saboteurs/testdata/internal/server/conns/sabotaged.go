package conns

// buffers are those that the connections of all clients share.
var buffers = make(chan []byte, 64)

// borrow returns a buffer for replies.
func borrow() []byte {
	select {
	case b := <-buffers:
		return b
	default:
		return make([]byte, 0, keepOutput)
	}
}

// giveBack has others use a buffer.
func giveBack(b []byte) {
	select {
	case buffers <- b[:0]:
	default:
	}
}
