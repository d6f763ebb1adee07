package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// explainStore adds to an error of the store at url, which took that long, what to do
// about it.
func explainStore(err error, url string, took time.Duration) error {
	return explain(err, segment.ErrNotCreated, "the store", "--store", url, took)
}

// explainRegistry is explainStore for a registry of worker IDs.
func explainRegistry(err error, url string, took time.Duration) error {
	return explain(err, worker.ErrNotCreated, "the worker registry", "--workers", url, took)
}

// explain does it for who is named by flag; notCreated says that it does not exist.
func explain(err, notCreated error, who, flag, url string, took time.Duration) error {
	switch {
	case err == nil || isHinted(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return noAnswer(who, err, url, took)
	case errors.Is(err, notCreated) && !errors.Is(err, segment.ErrNeedsResize): // which has a hint of its own
		return hinted(err, "leaf init %s %s", flag, shellWord(drivers.Redact(url)))
	}
	return err
}

func noAnswer(who string, err error, url string, took time.Duration) error {
	text := fmt.Sprintf("no answer from %s %s within %s%s", who, drivers.Redact(url), took.Round(100*time.Millisecond), detail(err, url))
	return hinted(&plainError{text, err}, "check its address and that it runs, or wait longer with --timeout")
}

// detail returns what err says beside the end of the time and the URL; "" if that is
// only what was tried.
func detail(err error, url string) string {
	text := strings.TrimSuffix(err.Error(), ": "+context.DeadlineExceeded.Error())
	for _, known := range []string{drivers.Redact(url), issuer.ErrRegistry.Error()} {
		if _, rest, ok := strings.Cut(text, known+": "); ok {
			text = rest
		}
	}
	if !strings.Contains(text, ": ") {
		return ""
	}
	return ": " + text
}
