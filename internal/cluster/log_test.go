package cluster

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// What etcd finds fatal reaches the member, and neither ends the process nor runs the deferred calls
// of etcd's goroutine, which panic in other goroutines.
func TestFatalStopsTheGoroutineAlone(t *testing.T) {
	for _, fatal := range []func(*zap.Logger, string, ...zap.Field){(*zap.Logger).Fatal, (*zap.Logger).Panic} {
		reasons, ended := make(chan string, 1), make(chan struct{})
		log := newLog(slog.New(slog.DiscardHandler), func(reason string) { reasons <- reason })
		go func() {
			defer close(ended)
			fatal(log, "failed to save", zap.Error(errors.New("no space left on device")))
		}()
		if got := <-reasons; got != "failed to save: no space left on device" {
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
	log := newLog(slog.New(slog.NewTextHandler(&out, nil)), nil)
	for range 5 {
		log.Warn("a peer is silent")
		log.Info("a step")
	}
	if n := strings.Count(out.String(), "a peer is silent"); n != 1 || strings.Contains(out.String(), "a step") {
		t.Errorf("%d warnings, want one, and no steps:\n%s", n, out.String())
	}
}
