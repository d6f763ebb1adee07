package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// learner is the error of a member without a vote.
const learner = "rpc not supported for learner"

// A memberError is the result of a call to one member, without gRPC's own words.
type memberError struct {
	addr  string
	cause error
}

func (e *memberError) Error() string {
	text := status.Convert(e.cause).Message()
	if code(e.cause) == codes.DeadlineExceeded {
		text = "it does not answer: " + text
	}
	for _, around := range []string{`connection error: desc = "`, "transport: ", "Error while dialing: "} {
		text = strings.TrimPrefix(text, around)
	}
	return "etcd at " + e.addr + ": " + strings.TrimSuffix(text, `"`)
}

func (e *memberError) Unwrap() error { return e.cause }

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
	faults := []codes.Code{codes.Unavailable, codes.DeadlineExceeded, codes.DataLoss, codes.Internal, codes.Unimplemented}
	return slices.Contains(faults, code(err)) || strings.Contains(err.Error(), learner)
}

// faults has remedies for errors of etcd, and for errors of the network, which gRPC returns as
// text. The first matching entry counts.
var faults = []struct {
	advice string
	errs   []error
	texts  []string
}{
	{"etcd's database is full and refuses writes: compact it (etcdctl compact REVISION), defragment each member (etcdctl defrag), " +
		"clear the alarm (etcdctl alarm disarm), and have --auto-compaction-retention keep it small", []error{rpctypes.ErrNoSpace}, nil},
	{"etcd refuses the user: check the user name and the password in the URL", []error{rpctypes.ErrAuthFailed}, nil},
	{"etcd demands a user: write user:password@ before the hosts in the URL", []error{rpctypes.ErrUserEmpty}, nil},
	{"the user may not read and write Leaf's keys: etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX/",
		[]error{rpctypes.ErrPermissionDenied}, nil},
	{"etcd has no leader for the moment: if that stays, start members until most of them run",
		[]error{rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrTimeoutDueToLeaderFail}, nil},
	{"etcd's members did not agree in time: check that most of them run, the network between them, and their disks",
		[]error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrTimeoutWaitAppliedIndex}, nil},
	{"etcd found that a member's data is damaged: remove that member and add it again", []error{rpctypes.ErrCorrupt}, nil},
	{"etcd is overloaded: look at its disk (etcd_disk_wal_fsync_duration_seconds)", []error{rpctypes.ErrTooManyRequests}, nil},
	{"etcd refuses the size of the record: raise --max-request-bytes", []error{rpctypes.ErrRequestTooLarge}, nil},
	{"the member is a learner, which has no data to rely on yet: promote it (etcdctl member promote), or name others", nil, []string{learner}},
	{"etcd offers no encryption there: remove tls from the URL", nil,
		[]string{"first record does not look like a TLS handshake", "authentication handshake failed: EOF"}},
	{"etcd's certificate is not trusted: name its authority with ca=FILE in the URL", nil,
		[]string{"x509:", "certificate is not trusted", "failed to verify certificate"}},
	{"etcd demands a certificate of the client, or refuses this one: name cert=FILE and key=FILE in the URL", nil,
		[]string{"certificate required", "bad certificate", "unknown certificate authority"}},
	{"no etcd answers there: check that it runs, and the hosts and ports in the URL", nil,
		[]string{"connection refused", "no such host", "no route to host", "network is unreachable", "i/o timeout"}},
	{"no etcd answers there, or one that demands encryption: check the hosts and ports in the URL, or add tls=true to it", nil,
		[]string{"error reading server preface"}},
	{"etcd closed the connection: it may have stopped", nil,
		[]string{"connection reset by peer", "broken pipe", "error reading from server: EOF", "transport is closing"}},
}

// noCertificate is added where a connection was encrypted and showed no certificate: etcd
// refuses that only after the connection stood.
const noCertificate = ", or offer no encryption (then remove tls from the URL), or demand a certificate of the client (then name cert=FILE and key=FILE in the URL)"

func (b *backend) advice(err error) string {
	for i, f := range faults {
		if !slices.ContainsFunc(f.errs, func(target error) bool { return errors.Is(err, target) }) &&
			!slices.ContainsFunc(f.texts, func(part string) bool { return strings.Contains(err.Error(), part) }) {
			continue
		}
		if i == len(faults)-1 && b.client.anonymous {
			return f.advice + noCertificate
		}
		return strings.Replace(f.advice, "PREFIX/", b.prefix, 1)
	}
	return ""
}
