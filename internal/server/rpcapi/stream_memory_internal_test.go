package rpcapi

import (
	"testing"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// FuzzStreamRequest decodes messages into memory of another one, as package proto decodes them.
func FuzzStreamRequest(f *testing.F) {
	for _, asks := range [][]*leafv1.TakeRequest{
		nil, {{}}, {{Key: "order", Count: 1}, {Scheme: "uid", Count: 1000}}, {{Key: "é", Count: -1}},
		{{Key: "order", Count: 3, Contiguous: true}}, {{Key: "order"}, {Key: "invoice", Count: 1, Period: "2026-11-28"}},
	} {
		f.Add(encode(f, asks))
	}
	f.Add([]byte("\x0a\x03\x12\x01\xff"))             // no UTF-8
	f.Add([]byte("\x0a\x06\x12\x01a\x12\x01b"))       // a key twice
	f.Add([]byte("\x0a\x0c\x18\xff\xff\xff\xff\xff")) // cut off
	before := encode(f, []*leafv1.TakeRequest{{Scheme: "uid", Key: "other", Count: 7}, {Key: "order", Count: 2}})
	c := codec{encoding.GetCodecV2(grpcproto.Name), &chargingPool{small: mem.DefaultBufferPool()}}
	f.Fuzz(func(t *testing.T, message []byte) {
		r := new(streamRequest)
		if !r.read(before) {
			t.Fatal("an ordinary message was refused")
		}
		streamRequests.Put(r)
		var got received
		err := c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, &got)
		var want leafv1.StreamRequest
		if wrong := proto.Unmarshal(message, &want); (err != nil) != (wrong != nil) {
			t.Fatalf("%v, want %v", err, wrong)
		}
		if err == nil && !proto.Equal(&leafv1.StreamRequest{Asks: got.asks}, &leafv1.StreamRequest{Asks: want.Asks}) {
			t.Errorf("%v, want %v", got.asks, want.Asks)
		}
	})
}

func encode(tb testing.TB, asks []*leafv1.TakeRequest) []byte {
	message, err := proto.Marshal(&leafv1.StreamRequest{Asks: asks})
	if err != nil {
		tb.Fatal(err)
	}
	return message
}

// A message has the memory of the one before it. Without that each ask takes two allocations.
func TestStreamSharesMemory(t *testing.T) {
	asks := make([]*leafv1.TakeRequest, 64)
	for i := range asks {
		asks[i] = &leafv1.TakeRequest{Key: "order", Count: 1}
	}
	c := codec{encoding.GetCodecV2(grpcproto.Name), &chargingPool{small: mem.DefaultBufferPool()}}
	data := mem.BufferSlice{mem.SliceBuffer(encode(t, asks))}
	each := testing.AllocsPerRun(1000, func() {
		var got received
		if err := c.Unmarshal(data, &got); err != nil || len(got.asks) != len(asks) {
			t.Fatal(err)
		}
		got.release()
		res := streamAnswers.Get().(*streamAnswer)
		for range asks {
			res.add(&res.single().answer)
		}
		res.release()
	})
	if each >= 64 { // package sync drops some memory in a test for races
		t.Errorf("%v allocations for %d asks", each, len(asks))
	}
}
