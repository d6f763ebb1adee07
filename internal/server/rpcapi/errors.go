package rpcapi

import (
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

// errorDomain is whose reasons those of an ErrorInfo are.
const errorDomain = "github.com/leaf-id/leaf"

// newError returns err as a client gets it, in the words of text: with its code, and with
// details that a program can act on.
func newError(err error, text string) *connect.Error {
	kind := frontend.KindOf(err)
	coded := connect.NewError(kind.RPC, errors.New(text))
	addDetail(coded, &errdetails.ErrorInfo{Reason: kind.Reason, Domain: errorDomain})
	if delay := frontend.RetryDelay(err); delay > 0 {
		addDetail(coded, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
	}
	return coded
}

func addDetail(err *connect.Error, message proto.Message) {
	if detail, e := connect.NewErrorDetail(message); e == nil { // every message can be one
		err.AddDetail(detail)
	}
}
