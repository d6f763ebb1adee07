package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLog returns a logger for etcd that writes to ours. What etcd finds fatal stops the goroutine
// for good, after failed, instead of the process: the rest of this server goes on. The goroutine must
// not end: its deferred calls would close what others of etcd still use, which panics. slow counts
// the steps of etcd that took too long.
func newLog(log *slog.Logger, slow *atomic.Int64, failed func(reason error)) *zap.Logger {
	hook := fatalHook{failed}
	return zap.New(logCore{log: log, slow: slow, recent: &recent{last: make(map[string]time.Time)}}, zap.WithFatalHook(hook), zap.WithPanicHook(hook))
}

type fatalHook struct{ failed func(error) }

func (h fatalHook) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	reason := errors.New(entry.Message)
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok {
			reason = fmt.Errorf("%w: %w", reason, cause)
		}
	}
	h.failed(reason)
	select {}
}

// A logCore is a [zapcore.Core] over a [slog.Logger].
type logCore struct {
	log    *slog.Logger
	slow   *atomic.Int64
	recent *recent
	fields []zapcore.Field
}

// A recent bounds repeated messages: etcd writes some for each heartbeat to a silent peer.
type recent struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// repeatAfter is when the same message appears again.
const repeatAfter = time.Minute

func (r *recent) again(message string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.last[message]) < repeatAfter {
		return true
	}
	r.last[message] = now
	return false
}

// ordinary are messages that etcd finds worth a warning, and that each new member causes.
var ordinary = []string{"Failed to detect schema version", "failed to update storage version", "failed to reach the peer URL", "failed to get version",
	"failed to convert response", "failed to get downgrade enabled status"}

// slowSteps are etcd's warnings of a slow disk. A busy processor causes them too.
var slowSteps = []string{"slow fdatasync", "apply request took too long",
	"leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk"}

const slowText = "the disk of this server is slow for a member of a cluster, or its processor is busy: writes of all servers wait for it"

// level returns ours for one of etcd's, which reports each of its steps as information.
func level(l zapcore.Level) slog.Level {
	switch {
	case l >= zapcore.ErrorLevel:
		return slog.LevelError
	case l == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func (c logCore) Enabled(l zapcore.Level) bool { return c.log.Enabled(context.Background(), level(l)) }

func (c logCore) With(fields []zapcore.Field) zapcore.Core {
	return logCore{c.log, c.slow, c.recent, append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c logCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l := level(e.Level); l > slog.LevelDebug && slices.Contains(ordinary, e.Message) {
		e.Level = zapcore.DebugLevel
	}
	message := e.Message
	if slices.Contains(slowSteps, message) {
		c.slow.Add(1)
		message = slowText // one line for all steps
	}
	if c.Enabled(e.Level) && (level(e.Level) == slog.LevelDebug || !c.recent.again(message, e.Time)) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c logCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	encoded := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(encoded)
	}
	if slices.Contains(slowSteps, e.Message) {
		c.log.Warn("cluster: "+slowText, "step", e.Message, "took", encoded.Fields["took"], "steps", c.slow.Load())
		return nil
	}
	attrs := make([]slog.Attr, 0, len(encoded.Fields))
	for name, value := range encoded.Fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	c.log.LogAttrs(context.Background(), level(e.Level), "cluster: "+e.Message, attrs...)
	return nil
}

func (c logCore) Sync() error { return nil }
