package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/failures"
)

// The oldest known good release of etcd.
const leastMajor, leastMinor = 3, 4

// A clock reads the time that members' HTTP servers tell.
type clock struct {
	urls []string
	http *http.Client
	last atomic.Int64 // which of urls told it last, modulo their number
}

// newClock returns the clock of the members themselves. It ignores the environment's proxies.
func newClock(urls []string, encryption *tls.Config) *clock {
	return &clock{urls: urls, http: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: encryption.Clone(), MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// read returns the time of one member, the same one for as long as that answers.
func (c *clock) read(ctx context.Context) (time.Time, error) {
	var failed failures.List
	first := c.last.Load()
	for i := range int64(len(c.urls)) {
		now, err := c.date(ctx, c.urls[(first+i)%int64(len(c.urls))]+"/version")
		if err == nil {
			c.last.Store(first + i)
			return now, nil
		}
		failed = append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return time.Time{}, failed
}

// date asks one member for its version, and returns the time of the answer.
func (c *clock) date(ctx context.Context, url string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, leastTimeout) // a member asks no other for this
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return time.Time{}, fmt.Errorf("etcd's HTTP server: %w", err)
	}
	defer resp.Body.Close()
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil || resp.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("%s answers %s: is it etcd? Where it serves HTTP elsewhere (--listen-client-http-urls), name that with http=host:port", url, resp.Status)
	}
	if err := checkVersion(resp.Body); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", url, err)
	}
	return now, nil
}

// checkVersion refuses an old etcd. It accepts an unreadable version.
func checkVersion(body io.Reader) error {
	var answer struct {
		Server string `json:"etcdserver"`
	}
	var major, minor int
	if err := json.NewDecoder(io.LimitReader(body, 1<<16)).Decode(&answer); err != nil {
		return nil
	}
	if _, err := fmt.Sscanf(answer.Server, "%d.%d", &major, &minor); err != nil {
		return nil
	}
	if major < leastMajor || major == leastMajor && minor < leastMinor {
		return fmt.Errorf("%w: etcd %s is too old: run %d.%d or later", leaf.ErrUnsupported, answer.Server, leastMajor, leastMinor)
	}
	return nil
}
