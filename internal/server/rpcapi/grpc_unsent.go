package rpcapi

import (
	"fmt"
	"runtime"
	"sync"
	"weak"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/server/conns"
)

// messageCost is the memory of a message for a byte of its encoding: its IDs, and what compresses
// it.
const messageCost = 3

// A codec encodes messages into buffers of its pool, and decodes those of streams into memory that is
// used again.
type codec struct {
	encoding.CodecV2
	pool *chargingPool
}

// Marshal implements [encoding.CodecV2].
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is no message", v)
	}
	size := proto.Size(message)
	options := proto.MarshalOptions{UseCachedSize: true}
	if mem.IsBelowBufferPoolingThreshold(size) {
		data, err := options.MarshalAppend(make([]byte, 0, size), message)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	buf := c.pool.get(size, messageCost*size)
	data, err := options.MarshalAppend((*buf)[:0], message)
	if err != nil {
		c.pool.Put(buf)
		return nil, err
	}
	*buf = data
	return mem.BufferSlice{mem.NewBuffer(buf, c.pool)}, nil
}

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*received)
	if !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	r.streamRequest = streamRequests.Get().(*streamRequest)
	if len(data) == 1 && r.read(data[0].ReadOnlyData()) {
		return nil
	}
	var message leafv1.StreamRequest
	err := c.CodecV2.Unmarshal(data, &message)
	r.asks = message.GetAsks()
	return err
}

// largestSmall is the size of the largest buffers that a chargingPool does not charge.
const largestSmall = 4 << 10

// A chargingPool charges large buffers to a budget until grpc-go has sent their content, or until
// garbage collection: grpc-go does not return the remaining ones at the end of a connection.
type chargingPool struct {
	small   mem.BufferPool
	unsent  *conns.Budget
	charged sync.Map // of *charge, by the weak.Pointer[[]byte] of the buffer
}

type charge struct {
	pool *chargingPool
	size int64
	key  weak.Pointer[[]byte]
}

// Get implements [mem.BufferPool].
func (p *chargingPool) Get(size int) *[]byte { return p.get(size, size) }

// get returns a buffer, and charges cost bytes for a large one.
func (p *chargingPool) get(size, cost int) *[]byte {
	if size <= largestSmall || p.unsent == nil {
		return p.small.Get(size)
	}
	buf := new(make([]byte, size))
	c := &charge{p, int64(cost), weak.Make(buf)}
	p.unsent.Add(c.size)
	p.charged.Store(c.key, c)
	runtime.AddCleanup(buf, (*charge).end, c)
	return buf
}

// Put implements [mem.BufferPool].
func (p *chargingPool) Put(buf *[]byte) {
	if cap(*buf) <= largestSmall || p.unsent == nil {
		p.small.Put(buf)
	} else if c, ok := p.charged.Load(weak.Make(buf)); ok {
		c.(*charge).end()
	}
}

// end gives the charge back, once.
func (c *charge) end() {
	if c.pool.charged.CompareAndDelete(c.key, c) {
		c.pool.unsent.Add(-c.size)
	}
}
