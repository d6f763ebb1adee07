//go:build !linux

package e2e

import (
	"errors"
	"testing"
	"time"
)

func canMountDisks() bool { return false }

func newDisk(t *testing.T) *disk {
	t.Fatal(errors.ErrUnsupported)
	return nil
}

type relay struct{}

func startRelay(*host, []string, time.Duration, float64) (relay, error) {
	return relay{}, errors.ErrUnsupported
}

func (relay) stop() {}
