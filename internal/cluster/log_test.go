package cluster

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
)

// What etcd finds fatal reaches the member, and neither ends the process nor runs the deferred calls
// of etcd's goroutine, which panic in other goroutines.
func TestFatalStopsTheGoroutineAlone(t *testing.T) {
	for _, fatal := range []func(*zap.Logger, string, ...zap.Field){(*zap.Logger).Fatal, (*zap.Logger).Panic} {
		reasons, ended := make(chan error, 1), make(chan struct{})
		log := newLog(slog.New(slog.DiscardHandler), new(atomic.Int64), func(reason error) { reasons <- reason })
		go func() {
			defer close(ended)
			fatal(log, "failed to save", zap.Error(&fs.PathError{Op: "write", Path: "wal", Err: syscall.ENOSPC}))
		}()
		if got := <-reasons; got.Error() != "failed to save: write wal: no space left on device" || !errors.Is(got, syscall.ENOSPC) {
			t.Errorf("reason %q", got)
		}
		select {
		case <-ended:
			t.Error("the goroutine ended")
		default:
		}
	}
}

func TestLogBoundsRepeatedMessages(t *testing.T) {
	var out bytes.Buffer
	log := newLog(slog.New(slog.NewTextHandler(&out, nil)), new(atomic.Int64), nil)
	for range 5 {
		log.Warn("a peer is silent")
		log.Info("a step")
	}
	if n := strings.Count(out.String(), "a peer is silent"); n != 1 || strings.Contains(out.String(), "a step") {
		t.Errorf("%d warnings, want one, and no steps:\n%s", n, out.String())
	}
}

// A slow disk is one clear warning, and each slow step counts.
func TestSlowStepsAreOneWarning(t *testing.T) {
	var out bytes.Buffer
	var slow atomic.Int64
	log := newLog(slog.New(slog.NewTextHandler(&out, nil)), &slow, nil)
	for range 3 {
		log.Warn("slow fdatasync", zap.Duration("took", 2*time.Second), zap.Duration("expected-duration", time.Second))
		log.Warn("apply request took too long", zap.Duration("took", time.Second), zap.String("request", "header:<ID:1 > txn:<>"))
	}
	text := out.String()
	if slow.Load() != 6 || strings.Count(text, "\n") != 1 || !strings.Contains(text, slowText) || !strings.Contains(text, "took=2s") || strings.Contains(text, "request=") {
		t.Errorf("%d slow steps, want 6, and one line:\n%s", slow.Load(), text)
	}
}
