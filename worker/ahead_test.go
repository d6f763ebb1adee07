package worker

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// If the clock is far below the floor of a lease, only generators that run as far ahead can use the
// lease: all generators must be able to issue.
func TestReadyWhenAllAre(t *testing.T) {
	k, err := NewKeeper(nil, &Options{MaxAhead: time.Minute, LeastAhead: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for ahead, ready := range map[time.Duration]bool{-time.Hour: true, time.Second: true, 30 * time.Second: false, 2 * time.Minute: false} {
		k.status = Status{Held: true, Floor: now.Add(ahead), Horizon: now.Add(time.Hour)}
		if err := k.Err(); (err == nil) != ready {
			t.Errorf("with a floor %v ahead: %v", ahead, err)
		}
	}
}

func TestShortClaimDelay(t *testing.T) {
	for delay, warned := range map[time.Duration]bool{0: false, -1: false, 20 * time.Second: true, 85 * time.Second: false} {
		var log bytes.Buffer
		_, err := NewKeeper(nil, &Options{MaxAhead: time.Minute, ClaimDelay: delay, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "too short") != warned {
			t.Errorf("%v: %q", delay, log.String())
		}
	}
}
