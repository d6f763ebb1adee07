package load

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// A Failure is a server's answer that brings no IDs.
type Failure struct {
	Kind string // a few words, the same for all errors of the kind
	Text string // the server's words
}

func (f *Failure) Error() string {
	if f.Text == "" {
		return f.Kind
	}
	return f.Kind + ": " + f.Text
}

func failure(kind, text string) error { return &Failure{kind, text} }

// Misfit reports whether err is an answer that does not fit its request: it has other IDs than
// requested, or it is not of the protocol. A broken connection and a server's refusal are none.
func Misfit(err error) bool {
	f, answered := errors.AsType[*Failure](err)
	return answered && (f.Kind == notIDs || f.Kind == wrongNumber) || errors.Is(err, errProtocol)
}

// errProtocol: the answer is not of the protocol.
var errProtocol = errors.New("the answer is not of the protocol")

// errConnect is wrapped by errors of connecting.
var errConnect = errors.New("connect")

const (
	kindTimeout = "time-out"
	kindOther   = "other errors"
)

// kinds are those of errors that no server has answered; the first match counts.
var kinds = []struct {
	err  error
	kind string
}{
	{context.DeadlineExceeded, kindTimeout},
	{os.ErrDeadlineExceeded, kindTimeout},
	{syscall.ECONNREFUSED, "connection refused"},
	{syscall.ECONNRESET, "connection broken"},
	{syscall.EPIPE, "connection broken"},
	{io.ErrUnexpectedEOF, "connection closed by the server"},
	{io.EOF, "connection closed by the server"},
	{net.ErrClosed, "connection broken"},
	{errConnect, "cannot connect"},
}

// kindOf returns the kind of an error, and its words.
func kindOf(err error) (kind, text string) {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.Kind, f.Text
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind, err.Error()
		}
	}
	return kindOther, err.Error()
}
