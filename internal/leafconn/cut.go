package leafconn

import (
	"context"
	"errors"
	"net/http"
)

// errCut is the error of a call whose connection net/http closed for another one: it hands a
// connection on before the call that had it has seen its answer, and if that call ends just then it
// closes the connection, with the error of that call.
var errCut = errors.New("the connection was closed for another call")

// ended is the error of a call after its context has ended. A call that gets it under a live
// context lost its connection to another call.
type ended struct{ error }

func (e ended) Unwrap() error { return e.error }

// A callContext ends with the context of a call; its error and cause are then ended.
type callContext struct{ context.Context }

func (c callContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return ended{err}
	}
	return nil
}

// Value has [context.Cause] find no other cause.
func (c callContext) Value(key any) any { return context.WithoutCancel(c.Context).Value(key) }

// AfterFunc spares package context a goroutine for each context below.
func (c callContext) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(c.Context, f) }

// errNoEnd refuses an answer without an end of its own: a cut answer looks whole, and an empty one
// is a valid message. Leaf's server always sends an end.
var errNoEnd = errors.New("an HTTP/1 answer without Content-Length or chunks, which may have been cut: have the proxy send one of them")

// A whole transport returns no such answer.
type whole struct{ *http.Transport }

// RoundTrip makes a request.
func (w whole) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.Transport.RoundTrip(req)
	if err == nil && res.ProtoMajor == 1 && res.ContentLength < 0 && len(res.TransferEncoding) == 0 {
		_ = res.Body.Close() // nothing of it is used
		return nil, errNoEnd
	}
	return res, err
}
