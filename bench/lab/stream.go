package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/load"
)

// streams is a target whose clients each have a stream, on one connection.
type streams struct{ conn *grpc.ClientConn }

func newStreams(addr string) (*streams, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
	return &streams{conn}, err
}

// Open implements [load.Target].
func (t *streams) Open() load.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	c := &streamConn{cancel: cancel}
	c.stream, c.err = t.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, leafv1connect.LeafServiceStreamProcedure)
	return c
}

type streamConn struct {
	cancel context.CancelFunc
	stream grpc.ClientStream
	err    error
	req    leafv1.StreamRequest
	res    leafv1.StreamResponse
}

func (c *streamConn) Close() error {
	c.cancel()
	return nil
}

// Do sends all calls in one message.
func (c *streamConn) Do(_ context.Context, calls []*load.Call) {
	if c.err == nil {
		c.err = c.do(calls)
	}
	for _, call := range calls {
		call.Err = c.err
	}
}

func (c *streamConn) do(calls []*load.Call) error {
	if len(c.req.Asks) != len(calls) {
		c.req.Asks = nil
		for _, call := range calls {
			c.req.Asks = append(c.req.Asks, &leafv1.TakeRequest{Key: call.Key, Count: int32(call.Count)})
		}
	}
	if err := c.stream.SendMsg(&c.req); err != nil {
		return err
	}
	for done := 0; done < len(calls); {
		if err := c.stream.RecvMsg(&c.res); err != nil {
			return err
		}
		for _, a := range c.res.GetAnswers() {
			if a.GetError() != nil {
				return errors.New(a.GetError().GetMessage())
			}
			if done == len(calls) {
				return fmt.Errorf("more than %d answers", len(calls))
			}
			for _, r := range a.GetRanges() {
				calls[done].IDs.Ranges = append(calls[done].IDs.Ranges, leaf.Range{Start: r.GetStart(), End: r.GetEnd()})
			}
			done++
		}
	}
	return nil
}
