package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/leaf-id/leaf"
)

// leastVersion is the oldest release of etcd that is known to work.
const leastMajor, leastMinor = 3, 4

// versionURLs returns the URLs of the members' versions, whose answers carry a time.
func versionURLs(endpoints []string, o Options) ([]string, error) {
	if len(o.HTTP) > 0 {
		endpoints = o.HTTP
	}
	addresses, err := checkAddresses(endpoints)
	if err != nil {
		return nil, err
	}
	for i, addr := range addresses {
		addresses[i] = endpoint(addr, o.TLS) + "/version"
	}
	return addresses, nil
}

// newHTTP returns a client of the members themselves, whatever proxy the environment
// names.
func newHTTP(encryption *tls.Config) *http.Client {
	return &http.Client{
		Transport:     &http.Transport{TLSClientConfig: encryption.Clone(), MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (b *backend) clock(ctx context.Context) (time.Time, error) {
	stopped, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(b.client.ctx, cancel)
	defer stop()
	var failed error
	first := b.answers.Load()
	for i := range int64(len(b.version)) {
		now, err := b.date(stopped, b.version[(first+i)%int64(len(b.version))])
		switch {
		case err == nil:
			b.answers.Store(first + i)
			return now, nil
		case b.client.ctx.Err() != nil:
			return time.Time{}, leaf.ErrClosed
		case ctx.Err() != nil:
			return time.Time{}, err
		case failed == nil:
			failed = err
		default:
			failed = fmt.Errorf("%w; %w", failed, err)
		}
	}
	return time.Time{}, failed
}

// date asks one member for its version, and returns the time of the answer.
func (b *backend) date(ctx context.Context, url string) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, leastPatience) // a member asks no other for this
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return time.Time{}, fmt.Errorf("etcd's HTTP server: %w", err)
	}
	defer resp.Body.Close()
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil || resp.StatusCode != http.StatusOK {
		return time.Time{}, fmt.Errorf("%s answers %s: is it etcd? Where it serves HTTP elsewhere (--listen-client-http-urls), name that with http=host:port in the URL", url, resp.Status)
	}
	if err := checkVersion(resp.Body); err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", url, err)
	}
	return now, nil
}

// checkVersion refuses an etcd that is too old. What cannot be read is not held against it.
func checkVersion(body io.Reader) error {
	var answer struct {
		Server string `json:"etcdserver"`
	}
	if err := json.NewDecoder(io.LimitReader(body, 1<<16)).Decode(&answer); err != nil {
		return nil
	}
	var major, minor int
	if _, err := fmt.Sscanf(answer.Server, "%d.%d", &major, &minor); err != nil {
		return nil
	}
	if major < leastMajor || major == leastMajor && minor < leastMinor {
		return fmt.Errorf("%w: etcd %s is too old: run %d.%d or later", leaf.ErrUnsupported, answer.Server, leastMajor, leastMinor)
	}
	return nil
}
