package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// explainCall adds to an error of the store or registry at url, which took that long, what
// to do about it.
func (u *urlFlag) explainCall(err error, url string, took time.Duration) error {
	switch {
	case err == nil || isHinted(err):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return noAnswer(u.who, err, url, took)
	case errors.Is(err, segment.ErrNeedsResize): // which has a hint of its own
	case strings.HasPrefix(url, "leaf"): // where nothing can be created
	case errors.Is(err, segment.ErrNotCreated), errors.Is(err, worker.ErrNotCreated):
		return cli.Hinted(err, "leaf init --%s %s", u.name, shellWord(drivers.Redact(url)))
	}
	return err
}

func noAnswer(who string, err error, url string, took time.Duration) error {
	text := fmt.Sprintf("no answer from %s %s within %s%s", who, drivers.Redact(url), took.Round(100*time.Millisecond), detail(err, url))
	return &cli.Error{Err: err, Text: text, Hint: "check its address and that it runs, or wait longer with --timeout"}
}

// detail returns the text of err besides the time-out and the URL; "" if that is only the attempted
// call.
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
