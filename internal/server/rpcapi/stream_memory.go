package rpcapi

import (
	"sync"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// Messages of streams share memory, one after the other: without that, garbage collection would take
// a seventh of the processor time.
var (
	streamRequests = sync.Pool{New: func() any { return new(streamRequest) }}
	streamAnswers  = sync.Pool{New: func() any { return new(streamAnswer) }}
)

// A streamRequest is a message of a client. Nothing of it is used after release.
type streamRequest struct {
	asks []*leafv1.TakeRequest
	own  []*leafv1.TakeRequest // memory for them; only scheme, key and count are ever set
}

// received has grpc-go take the memory of a message when it comes: until then a stream holds none.
type received struct{ *streamRequest }

func (r *streamRequest) release() {
	r.asks = nil
	streamRequests.Put(r)
}

// read decodes a message of usual asks. For any other one, also an invalid one, it returns false.
func (r *streamRequest) read(message []byte) bool {
	n := 0
	for ; len(message) > 0; n++ {
		number, kind, head := protowire.ConsumeTag(message)
		if head < 0 || number != 1 || kind != protowire.BytesType {
			return false
		}
		ask, size := protowire.ConsumeBytes(message[head:])
		if size < 0 {
			return false
		}
		message = message[head+size:]
		if n == len(r.own) {
			r.own = append(r.own, new(leafv1.TakeRequest))
		}
		if !readAsk(r.own[n], ask) {
			return false
		}
	}
	r.asks = r.own[:n]
	return true
}

// readAsk decodes an ask that has a scheme, a key and a count at most. Most repeat the names of the
// one that had the memory before, which need no new one then.
func readAsk(ask *leafv1.TakeRequest, message []byte) bool {
	var scheme, key []byte
	var count uint64
	for len(message) > 0 {
		number, kind, head := protowire.ConsumeTag(message)
		if head < 0 {
			return false
		}
		message = message[head:]
		var size int
		switch {
		case number == 1 && kind == protowire.BytesType:
			scheme, size = protowire.ConsumeBytes(message)
		case number == 2 && kind == protowire.BytesType:
			key, size = protowire.ConsumeBytes(message)
		case number == 3 && kind == protowire.VarintType:
			count, size = protowire.ConsumeVarint(message)
		default:
			return false
		}
		if size < 0 {
			return false
		}
		message = message[size:]
	}
	ask.Count = int32(count)
	return setText(&ask.Scheme, scheme) && setText(&ask.Key, key)
}

func setText(to *string, text []byte) bool {
	if *to == string(text) {
		return true
	}
	if !utf8.Valid(text) {
		return false
	}
	*to = string(text)
	return true
}

// A streamAnswer is a message for a client, in the making.
type streamAnswer struct {
	message leafv1.StreamResponse
	parts   int // ranges and texts
	singles []*single
	used    int // of singles
}

// A single is an answer of one ID.
type single struct {
	answer leafv1.StreamAnswer
	ranges [1]*leafv1.Range
	id     leafv1.Range
}

// single returns memory for the answer of one ID.
func (a *streamAnswer) single() *single {
	if a.used == len(a.singles) {
		a.singles = append(a.singles, new(single))
	}
	a.used++
	return a.singles[a.used-1]
}

func (a *streamAnswer) add(one *leafv1.StreamAnswer) {
	a.message.Answers = append(a.message.Answers, one)
	a.parts += len(one.GetRanges()) + len(one.GetTexts())
}

// send sends the message and begins the next one.
func (a *streamAnswer) send(stream streamConn) error {
	defer a.clear()
	return stream.Send(&a.message)
}

func (a *streamAnswer) clear() {
	clear(a.message.Answers) // of others' memory
	a.message.Answers, a.parts, a.used = a.message.Answers[:0], 0, 0
}

func (a *streamAnswer) release() {
	a.clear()
	streamAnswers.Put(a)
}
