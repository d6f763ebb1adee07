package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A memberError is what came of a call to one member.
type memberError struct {
	addr  string
	cause error
}

func (e *memberError) Error() string {
	if code(e.cause) == codes.DeadlineExceeded {
		return fmt.Sprintf("etcd at %s does not answer: %v", e.addr, e.cause)
	}
	return fmt.Sprintf("etcd at %s: %s", e.addr, words(e.cause))
}

func (e *memberError) Unwrap() error { return e.cause }

// words leaves out what gRPC puts around the message.
func words(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		return err.Error()
	}
	text, ok := strings.CutPrefix(s.Message(), `connection error: desc = "`)
	if !ok {
		return text
	}
	text = strings.TrimPrefix(strings.TrimSuffix(text, `"`), "transport: ")
	return strings.TrimPrefix(text, "Error while dialing: ")
}

// code returns the status that a call ended with.
func code(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return codes.DeadlineExceeded
	}
	return status.Code(err)
}

// memberFault reports whether another member may do better.
func memberFault(err error) bool {
	switch code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss, codes.Internal, codes.Unimplemented:
		return true
	}
	return isLearner(err)
}

// isLearner reports whether a member refused because it has no vote yet.
func isLearner(err error) bool { return strings.Contains(err.Error(), "rpc not supported for learner") }

// explain says what is wrong and what to do. None of the errors that it passes on
// holds a password.
func (c *client) explain(err error) error {
	if advice := c.advice(err); advice != "" {
		return fmt.Errorf("%s: %w", advice, err)
	}
	return err
}

func (c *client) advice(err error) string {
	is := func(targets ...error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
	switch {
	case is(rpctypes.ErrNoSpace):
		return "etcd's database is full and refuses writes: compact it (etcdctl compact REVISION), defragment each member (etcdctl defrag), " +
			"clear the alarm (etcdctl alarm disarm), and have --auto-compaction-retention keep it small"
	case is(rpctypes.ErrAuthFailed):
		return "etcd refuses the user: check the user name and the password in the URL"
	case is(rpctypes.ErrUserEmpty):
		return "etcd demands a user: write user:password@ before the hosts in the URL"
	case is(rpctypes.ErrPermissionDenied):
		return "the user may not read and write Leaf's keys: etcdctl role grant-permission ROLE --prefix=true readwrite " + c.prefix
	case is(rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeoutDueToLeaderFail):
		return "etcd has no leader for the moment: if that stays, start members until most of them run"
	case is(rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex):
		return "etcd's members did not agree in time: check that most of them run, the network between them, and their disks"
	case is(rpctypes.ErrCorrupt):
		return "etcd found that a member's data is damaged: remove that member and add it anew"
	case is(rpctypes.ErrTooManyRequests):
		return "etcd is overloaded: look at its disk (etcd_disk_wal_fsync_duration_seconds)"
	case is(rpctypes.ErrRequestTooLarge):
		return "etcd refuses the size of the record: raise --max-request-bytes"
	case isLearner(err):
		return "the member is a learner, which has no data to rely on yet: promote it (etcdctl member promote), or name others"
	}
	return c.connectionAdvice(err.Error())
}

// connectionAdvice goes by the text, which is all that gRPC leaves of an error of the
// network.
func (c *client) connectionAdvice(text string) string {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case has("first record does not look like a TLS handshake", "authentication handshake failed: EOF"):
		return "etcd offers no encryption there: remove tls from the URL"
	case has("x509:", "certificate is not trusted", "failed to verify certificate"):
		return "etcd's certificate is not trusted: name its authority with ca=FILE in the URL"
	case has("certificate required", "bad certificate", "unknown certificate authority"):
		return "etcd demands a certificate of the client, or refuses this one: name cert=FILE and key=FILE in the URL"
	case has("connection refused", "no such host", "no route to host", "network is unreachable", "i/o timeout"):
		return "no etcd answers there: check that it runs, and the hosts and ports in the URL"
	case has("error reading server preface"):
		return "no etcd answers there, or one that demands encryption: check the hosts and ports in the URL, or add tls=true to it"
	case has("connection reset by peer", "broken pipe", "error reading from server: EOF", "transport is closing"):
		if c.anonymous { // it is told so only after the connection stood
			return "etcd closed the connection: it may have stopped, or offer no encryption (then remove tls from the URL), or demand a certificate of the client (then name cert=FILE and key=FILE in the URL)"
		}
		return "etcd closed the connection: it may have stopped"
	}
	return ""
}
