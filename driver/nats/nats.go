package nats

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/worker"
)

// DefaultStream is the name of the stream where [Options] say nothing else.
const DefaultStream = "LEAF"

const (
	parallelGets = 32
	shards       = 16 // of each kind's names: servers answer with up to 100,000 in one list
)

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	// Stream is the name of the stream. Default [DefaultStream].
	Stream string

	// Replicas is how many servers hold a stream that Init creates, 1 to 5. Default 1. Of 2 and 4
	// as many may fail as of 1 and 3.
	Replicas int

	// Connect are further options of the connection, such as nats.UserInfo,
	// nats.UserCredentials or nats.Secure. For [Open].
	Connect []nats.Option
}

// A backend is one stream. It is a [kv.Backend], a [kv.Preparer] and a [kv.Checker].
type backend struct {
	url      string // empty: conn is the caller's
	stream   string
	replicas int
	connect  []nats.Option

	ended context.Context // by Close
	end   context.CancelFunc

	lock    chan struct{} // holds one element while the fields below are in use
	conn    *nats.Conn
	js      jetstream.JetStream
	of      jetstream.Stream
	pending chan connected // gets the outcome of the attempt to connect; nil: none is under way
}

type connected struct {
	conn *nats.Conn
	err  error
}

// Open returns the store and the registry in a stream of the NATS at url, nats://h1:4222,… It
// connects at the first call, which reports the problems.
func Open(url string, opts *Options) (*kv.DB, error) {
	b, err := newBackend(opts)
	if err != nil || url == "" {
		return nil, cmp.Or(err, fmt.Errorf("%w: nats needs a URL", leaf.ErrInvalid))
	}
	b.url = url
	return kv.New(b, nil), nil
}

// New is [Open] on an existing connection, which [kv.DB.Close] leaves open. It refuses a connection
// that buffers writes without a server (nats.ReconnectBufSize(-1) switches that off): such writes
// would go out after their callers have left.
func New(conn *nats.Conn, opts *Options) (*kv.DB, error) {
	b, err := newBackend(opts)
	if err == nil && conn.Opts.ReconnectBufSize >= 0 {
		err = fmt.Errorf("%w: the NATS connection buffers writes: make it with nats.ReconnectBufSize(-1)", leaf.ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	b.conn = conn
	return kv.New(b, nil), nil
}

// Prepare makes the stream, if it is missing. It leaves one that exists as it is.
func (b *backend) Prepare(ctx context.Context) error {
	js, _, err := b.open(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: b.stream, Subjects: []string{b.stream + ".>"}, Replicas: b.replicas,
			Description: "counters and worker IDs of Leaf", MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew,
			Storage: jetstream.FileStorage, DenyDelete: true, DenyPurge: true,
		})
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("create stream %s: %w", b.stream, err)
	}
	return b.Check(ctx)
}

func newBackend(opts *Options) (*backend, error) {
	if opts == nil {
		opts = &Options{}
	}
	b := &backend{stream: cmp.Or(opts.Stream, DefaultStream), connect: opts.Connect, replicas: max(1, opts.Replicas), lock: make(chan struct{}, 1)}
	b.ended, b.end = context.WithCancel(context.Background())
	if strings.ContainsAny(b.stream, " .*>/\\") {
		return nil, fmt.Errorf("%w: the name of stream %q has a space, dot, slash or wildcard", leaf.ErrInvalid, b.stream)
	}
	return b, nil
}

// String names NATS and the stream.
func (b *backend) String() string { return "NATS stream " + b.stream }

// KeyName returns the subject of a key.
func (b *backend) KeyName(key kv.Key) string { return "subject " + b.subject(key) }

// subject returns the subject of a key: the kind, the shard and the name.
func (b *backend) subject(key kv.Key) string {
	name := []byte(key.Name)
	shard := fmt.Sprintf("%x", crc32.ChecksumIEEE(name)%shards)
	return strings.Join([]string{b.stream, string(key.Kind), shard, base64.RawURLEncoding.EncodeToString(name)}, ".")
}

// key returns the key of a kind that has the subject.
func (b *backend) key(kind kv.Kind, subject string) (kv.Key, error) {
	name, err := base64.RawURLEncoding.DecodeString(subject[strings.LastIndexByte(subject, '.')+1:])
	if key := (kv.Key{Kind: kind, Name: string(name)}); err == nil && b.subject(key) == subject {
		return key, nil
	}
	return kv.Key{}, fmt.Errorf("subject %s of stream %s is not a cell: purge it", subject, b.stream)
}

// open returns the stream, after connecting if necessary.
func (b *backend) open(ctx context.Context) (jetstream.JetStream, jetstream.Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ended, cancel)()
	select {
	case b.lock <- struct{}{}:
		defer func() { <-b.lock }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if err := b.ended.Err(); err != nil { // Close has come between
		return nil, nil, err
	}
	err := b.join(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to NATS at %s: %w", b.hosts(), explain(err))
	}
	if b.js == nil {
		if b.js, err = jetstream.New(b.conn); err != nil {
			return nil, nil, err
		}
	}
	if b.of == nil {
		of, err := b.js.Stream(ctx, b.stream)
		if err != nil {
			return b.js, nil, fmt.Errorf("stream %s: %w", b.stream, err)
		}
		b.of = of
	}
	return b.js, b.of, nil
}

// join connects if necessary, also after the client has closed its connection for good, as it does
// after some errors of the server. The client connects without regard to ctx, so callers only wait
// for it.
func (b *backend) join(ctx context.Context) error {
	if b.url == "" || b.conn != nil && !b.conn.IsClosed() {
		return nil
	}
	b.conn, b.js, b.of = nil, nil, nil
	if b.pending == nil {
		pending := make(chan connected, 1)
		b.pending = pending
		go func() {
			conn, err := nats.Connect(b.url, b.options()...)
			pending <- connected{conn, err}
		}()
	}
	select {
	case c := <-b.pending:
		b.pending = nil
		if c.err == nil {
			b.conn = c.conn
		}
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *backend) options() []nats.Option {
	return append([]nats.Option{
		nats.Name("leaf"), nats.Timeout(2 * time.Second), nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.ReconnectWait(200 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // wrong credentials may come right
		nats.ReconnectBufSize(-1),   // what waits for a connection would be sent after its caller has left
	}, b.connect...)
}

// server returns the time of the marker's message, which distinguishes the stream from a new one
// with the same name. It is empty without a marker. The stream's own creation time does not serve:
// NATS 2.9 changes it at a start after a change of the configuration.
func (b *backend) server(ctx context.Context, of jetstream.Stream) (string, error) {
	subject := b.subject(kv.Key{Kind: kv.Format, Name: string(kv.Tags)})
	msg, err := of.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read subject %s: %w", subject, err)
	}
	return msg.Time.UTC().Format(time.RFC3339Nano), nil
}

// hosts returns the servers of the URL, without users and passwords.
func (b *backend) hosts() string {
	hosts := strings.Split(b.url, ",")
	for i, h := range hosts {
		h = strings.TrimRight(h, "/")
		hosts[i] = h[strings.LastIndexAny(h, "/@")+1:]
	}
	return strings.Join(hosts, ",")
}

func explain(err error) error {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
		return fmt.Errorf("%w: check the user name and the password", err)
	}
	return fmt.Errorf("%w: check that it runs, and the hosts and ports", err)
}

// Check refuses a stream that could lose a cell, or answer with an old one.
func (b *backend) Check(ctx context.Context) error {
	js, of, err := b.open(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // which the marker tells
	}
	if err != nil {
		return err
	}
	info, err := of.Info(ctx)
	if err != nil {
		return fmt.Errorf("stream %s: %w", b.stream, err)
	}
	if why := unfit(info.Config, js.Conn().ConnectedServerVersion()); why != "" {
		return fmt.Errorf("%w: stream %s %s", leaf.ErrUnsupported, b.stream, why)
	}
	return nil
}

func unfit(c jetstream.StreamConfig, version string) string {
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	switch {
	case c.Storage != jetstream.FileStorage:
		return "is in memory: it needs storage in files"
	case c.MaxAge != 0 || c.AllowMsgTTL:
		return "has messages that expire: it needs max age 0 and no per-message TTL"
	case c.Discard != jetstream.DiscardNew && (c.MaxMsgs > 0 || c.MaxBytes > 0):
		return "discards old messages at its limits: it needs discard new"
	case c.Retention != jetstream.LimitsPolicy:
		return "deletes consumed messages: it needs retention by limits"
	case c.AllowDirect:
		return "lets any replica answer: it needs allow direct off"
	case c.Mirror != nil || len(c.Sources) > 0 || c.Sealed || c.NoAck:
		return "is a mirror, has sources, is sealed or acknowledges nothing"
	case c.Replicas > 1 && slices.Compare([]int{major, minor}, []int{2, 11}) < 0:
		return fmt.Sprintf("has replicas on NATS %s, which may accept two writes of one version: upgrade to 2.11 or later", version)
	}
	return ""
}

// Get returns the cell of a key, as the stream's leader has it.
func (b *backend) Get(ctx context.Context, key kv.Key) (kv.Cell, error) {
	_, of, err := b.open(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return kv.Cell{Key: key}, nil
	}
	if err != nil {
		return kv.Cell{}, err
	}
	return b.getWithServer(ctx, of, key)
}

// getWithServer returns the cell of a key, and the server with that of a tag: somebody may create
// the stream again while it is in use.
func (b *backend) getWithServer(ctx context.Context, of jetstream.Stream, key kv.Key) (kv.Cell, error) {
	if key.Kind != kv.Tags && key.Kind != kv.Periods {
		return b.get(ctx, of, key)
	}
	var server string
	var unknown error
	var other sync.WaitGroup
	other.Go(func() { server, unknown = b.server(ctx, of) })
	cell, err := b.get(ctx, of, key)
	other.Wait()
	if err := cmp.Or(err, unknown); err != nil {
		return kv.Cell{}, err
	}
	cell.Server = server
	return cell, nil
}

// get returns the cell of a key, without the server.
func (b *backend) get(ctx context.Context, of jetstream.Stream, key kv.Key) (kv.Cell, error) {
	msg, err := of.GetLastMsgForSubject(ctx, b.subject(key))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return kv.Cell{Key: key}, nil
	}
	if err != nil {
		return kv.Cell{}, fmt.Errorf("read %s: %w", b.KeyName(key), err)
	}
	return kv.Cell{Key: key, Value: string(msg.Data), Version: strconv.FormatUint(msg.Sequence, 10)}, nil
}

// Swap publishes value if the last message of the cell is still old. A sequence number comes
// back when the stream is restored from a backup, so the message is read first: between that
// and the write the number tells.
func (b *backend) Swap(ctx context.Context, old kv.Cell, value string) (kv.Cell, error) {
	js, of, err := b.open(ctx)
	if err != nil {
		return kv.Cell{}, err
	}
	found, err := b.getWithServer(ctx, of, old.Key)
	if err != nil {
		return kv.Cell{}, err
	}
	var sequence uint64
	if old.Version != "" {
		if found.Version != old.Version || found.Value != old.Value || old.Server != "" && found.Server != old.Server {
			return found, kv.ErrConflict
		}
		if sequence, err = strconv.ParseUint(old.Version, 10, 64); err != nil {
			return kv.Cell{}, err
		}
	}
	ack, err := js.Publish(ctx, b.subject(old.Key), []byte(value),
		jetstream.WithExpectLastSequencePerSubject(sequence), jetstream.WithExpectStream(b.stream), jetstream.WithRetryAttempts(0))
	if e, ok := errors.AsType[*jetstream.APIError](err); ok && e.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence {
		return kv.Cell{}, kv.ErrConflict
	}
	if err != nil {
		return kv.Cell{}, fmt.Errorf("write %s: %w", b.KeyName(old.Key), err)
	}
	return kv.Cell{Key: old.Key, Value: value, Version: strconv.FormatUint(ack.Sequence, 10), Server: found.Server}, nil
}

// List yields the cells of a kind.
func (b *backend) List(ctx context.Context, kind kv.Kind) iter.Seq2[kv.Cell, error] {
	return func(yield func(kv.Cell, error) bool) {
		_, of, err := b.open(ctx)
		if err != nil {
			yield(kv.Cell{}, err)
			return
		}
		for shard := range shards {
			subjects := fmt.Sprintf("%s.%s.%x.>", b.stream, kind, shard)
			info, err := of.Info(ctx, jetstream.WithSubjectFilter(subjects))
			if err != nil {
				yield(kv.Cell{}, fmt.Errorf("list %s of stream %s: %w", kind, b.stream, err))
				return
			}
			for page := range slices.Chunk(slices.Collect(maps.Keys(info.State.Subjects)), parallelGets) {
				cells, err := b.getAll(ctx, of, kind, page)
				if err != nil {
					yield(kv.Cell{}, err)
					return
				}
				for _, cell := range cells {
					if !yield(cell, nil) {
						return
					}
				}
			}
		}
	}
}

func (b *backend) getAll(ctx context.Context, of jetstream.Stream, kind kv.Kind, subjects []string) ([]kv.Cell, error) {
	cells, errs := make([]kv.Cell, len(subjects)), make([]error, len(subjects))
	var wg sync.WaitGroup
	for i, subject := range subjects {
		wg.Go(func() {
			var key kv.Key
			if key, errs[i] = b.key(kind, subject); errs[i] == nil {
				cells[i], errs[i] = b.get(ctx, of, key)
			}
		})
	}
	wg.Wait()
	return cells, cmp.Or(errs...) // one is enough to tell
}

// ServerEpoch reports possible losses: a client cannot ask whether servers sync before they
// acknowledge (sync_interval: always), and by default they do not. A loss in a power failure leaves
// no mark, so the incarnation is unknown.
func (b *backend) ServerEpoch(context.Context) (worker.ServerEpoch, error) {
	return worker.ServerEpoch{Lossy: true}, nil
}

// Clock returns the time at which the stream's leader stored a message that it is sent.
func (b *backend) Clock(ctx context.Context) (time.Time, error) {
	js, of, err := b.open(ctx)
	if err != nil {
		return time.Time{}, err
	}
	subject := b.subject(kv.Key{Kind: kv.Format, Name: "clock"})
	if _, err := js.Publish(ctx, subject, nil, jetstream.WithRetryAttempts(0)); err != nil {
		return time.Time{}, err
	}
	msg, err := of.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return time.Time{}, err
	}
	return msg.Time, nil
}

// Close ends the connection, unless it is the caller's.
func (b *backend) Close() error {
	b.end()
	b.lock <- struct{}{}
	defer func() { <-b.lock }()
	if b.conn != nil && b.url != "" {
		b.conn.Close()
	}
	if pending := b.pending; pending != nil {
		go func() {
			if c := <-pending; c.err == nil {
				c.conn.Close()
			}
		}()
	}
	return nil
}
