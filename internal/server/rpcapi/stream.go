package rpcapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

const (
	streamIdle    = 2 * time.Minute // how long a stream may be without a message
	lastAnswer    = 10 * time.Second
	streamBacklog = 64   // messages read ahead of the answers
	maxAsks       = 1000 // in a message, and answered by one
	maxParts      = 4096 // ranges and texts in an answer, but for those of its last ask
)

// A streamConn is a request in a stream.
type streamConn interface {
	Receive() (*streamRequest, error)
	Send(*leafv1.StreamResponse) error
	Extend()            // gives it until the next message, and some time more for the last answer
	End(reading func()) // ends the reads; reading waits until they have ended
}

type deadlineKey struct{}

// withDeadlines bounds a stream from message to message rather than as a whole.
func withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), deadlineKey{}, c)))
	})
}

// A httpStream is a stream over net/http.
type httpStream struct {
	*connect.BidiStream[leafv1.StreamRequest, leafv1.StreamResponse]
	deadlines *http.ResponseController
	ctx       context.Context // of the request
}

// Receive implements streamConn.
func (s httpStream) Receive() (*streamRequest, error) {
	req, err := s.BidiStream.Receive()
	if err != nil {
		return nil, err
	}
	r := streamRequests.Get().(*streamRequest)
	r.asks = req.GetAsks()
	return r, nil
}

// Send implements streamConn.
func (s httpStream) Send(res *leafv1.StreamResponse) error {
	defer frontend.EndCharge(s.ctx)
	return s.BidiStream.Send(res)
}

// Extend implements streamConn. Only a writer of a test has no deadlines.
func (s httpStream) Extend() {
	_ = s.deadlines.SetReadDeadline(time.Now().Add(streamIdle))
	_ = s.deadlines.SetWriteDeadline(time.Now().Add(streamIdle + lastAnswer))
}

// End implements streamConn: a body is not read after the end of its handler.
func (s httpStream) End(reading func()) {
	_ = s.deadlines.SetReadDeadline(time.Now())
	reading()
}

// Stream answers requests in order, all waiting ones in one message: a message costs more than an
// ID.
func (s *leafService) Stream(ctx context.Context, stream *connect.BidiStream[leafv1.StreamRequest, leafv1.StreamResponse]) error {
	deadlines, _ := ctx.Value(deadlineKey{}).(*http.ResponseController)
	return s.serve(ctx, httpStream{stream, deadlines, ctx})
}

func (s *leafService) serve(ctx context.Context, stream streamConn) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &streamReader{leafService: s, stream: stream, waiting: make(chan *streamRequest, streamBacklog)}
	var reading sync.WaitGroup
	defer stream.End(reading.Wait)
	defer cancel()
	reading.Go(func() { r.run(ctx) })
	err := r.answerAhead(ctx)
	r.turn.Lock() // no answer is under way after this
	defer r.turn.Unlock()
	r.ended = true
	return err
}

// A streamReader reads the requests of a stream. It answers them itself, which saves a change of
// goroutines for each message, until a client turns out to send more before it has the answers: these
// wait for the handler's goroutine, and share answers.
type streamReader struct {
	*leafService
	stream  streamConn
	waiting chan *streamRequest
	end     error // of the reads; this and fault are set before waiting is closed
	fault   any   // a panic in an answer, for the handler's goroutine

	turn  sync.Mutex // of the reader's answers
	ended bool       // the handler returns
}

const (
	atOnce     = 5 * time.Microsecond // a message that takes no longer to receive had already come
	aheadAfter = 16                   // such messages, one behind the other
)

// answerAhead answers the waiting requests until the end of the stream.
func (r *streamReader) answerAhead(ctx context.Context) error {
	for {
		select {
		case first, ok := <-r.waiting:
			if !ok && r.fault != nil {
				panic(r.fault)
			}
			if !ok {
				return r.end
			}
			if err := r.answer(ctx, r.stream, first, r.waiting); err != nil {
				return err
			}
		case <-r.Stopping:
			return newError(leaf.ErrClosed, "the server is stopping")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// run answers the requests, or passes them on, until the last.
func (r *streamReader) run(ctx context.Context) {
	defer close(r.waiting)
	defer func() {
		if reason := recover(); reason != nil {
			r.fault = fmt.Sprintf("%v\n%s", reason, debug.Stack())
		}
	}()
	r.stream.Extend()
	start, extended, ready := time.Now(), time.Duration(0), 0
	for r.end == nil {
		began := time.Since(start)
		if began-extended > streamIdle/8 { // timers cost more than an ID
			extended = began
			r.stream.Extend()
		}
		req, err := r.stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			r.end = err
			return
		case len(req.asks) > maxAsks:
			r.end = newError(leaf.ErrInvalid, fmt.Sprintf("%d asks in a message: at most %d", len(req.asks), maxAsks))
			return
		}
		if ready < aheadAfter { // else for good
			ready++
			if time.Since(start)-began > atOnce {
				ready = 0
			}
			r.end = r.answerNow(ctx, req)
			continue
		}
		select {
		case r.waiting <- req:
		case <-ctx.Done():
			r.end = context.Cause(ctx)
		}
	}
}

// answerNow answers a request, unless the handler returns.
func (r *streamReader) answerNow(ctx context.Context, req *streamRequest) error {
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.ended {
		return newError(leaf.ErrClosed, "the stream has ended")
	}
	return r.answer(ctx, r.stream, req, nil)
}

// answer answers the first request, and those that wait behind it. It sends the answers before they
// grow large: a client that does not read them must not fill the memory.
func (s *leafService) answer(ctx context.Context, stream streamConn, first *streamRequest, more <-chan *streamRequest) error {
	recorder := s.requests.Recorder(0)
	arrived := recorder.Now()
	res := streamAnswers.Get().(*streamAnswer)
	defer res.release()
	for req, ok := first, true; ok && len(res.message.Answers) < maxAsks; {
		for _, ask := range req.asks {
			if res.parts >= maxParts {
				recorder.Done(arrived, len(res.message.Answers))
				if err := res.send(stream); err != nil {
					return err
				}
				arrived = recorder.Now()
			}
			if isSingle(ask) {
				res.add(s.answerSingle(ctx, ask, res.single()))
			} else {
				res.add(s.answerMany(ctx, ask))
			}
		}
		req.release()
		select {
		case req, ok = <-more:
		default:
			ok = false
		}
	}
	recorder.Done(arrived, len(res.message.Answers))
	return res.send(stream)
}

// isSingle reports whether an ask is for one number.
func isSingle(ask *leafv1.TakeRequest) bool {
	return ask.GetCount() == 1 && !ask.GetContiguous() && !ask.GetForm() && !issuer.SchemeOf(ask.GetScheme()).Text
}

func (s *leafService) answerMany(ctx context.Context, ask *leafv1.TakeRequest) *leafv1.StreamAnswer {
	res, err := s.Take(ctx, ask)
	if err != nil {
		return s.failure(err)
	}
	return &leafv1.StreamAnswer{Ranges: res.GetRanges(), Texts: res.GetTexts(), Period: res.GetPeriod()}
}

func (s *leafService) answerSingle(ctx context.Context, ask *leafv1.TakeRequest, one *single) *leafv1.StreamAnswer {
	id, period, err := s.takeOne(ctx, ask.GetScheme(), ask.GetKey(), ask.GetPeriod())
	if err != nil {
		return s.failure(err)
	}
	one.id.Start, one.id.End = id.Number, id.Number+1
	one.ranges[0] = &one.id
	one.answer.Ranges, one.answer.Period = one.ranges[:], period
	return &one.answer
}

func (s *leafService) failure(err error) *leafv1.StreamAnswer {
	kind := frontend.KindOf(err)
	s.requests.Failed(kind.Reason)
	e := &leafv1.StreamError{Code: int32(kind.RPC), Reason: kind.Reason, Message: frontend.Text(err)}
	if delay := frontend.RetryDelay(err); delay > 0 {
		e.RetryDelay = durationpb.New(delay)
	}
	return &leafv1.StreamAnswer{Error: e}
}
