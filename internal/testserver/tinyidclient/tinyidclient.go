// Package tinyidclient does what TinyID's own Java client does, for tests: its request, its
// parsing, its arithmetic with delta and remainder, and its two segments.
package tinyidclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// A Client takes IDs of one type. Its fields must not change after the first use.
type Client struct {
	HTTP        *http.Client
	URL         func() string // of a server, for each request
	Token, Type string

	mu            sync.Mutex
	current, next *Segment
	loading       chan struct{} // closed at the end of the running load; nil: no load runs
	loads         int
}

// A Segment yields the numbers above Current, up to Max, with the remainder.
type Segment struct {
	Current, Loading, Max int64
	Delta, Remainder      int32
	begun                 bool
}

// Next returns the next number; ok is false at the end of the segments.
func (s *Segment) Next() (id int64, ok bool) {
	s.begin()
	s.Current += int64(s.Delta)
	return s.Current, s.Current <= s.Max
}

// begin moves Current below the first matching number.
func (s *Segment) begin() {
	if s.begun {
		return
	}
	s.begun = true
	delta, remainder := int64(s.Delta), int64(s.Remainder)
	if s.Current%delta == remainder {
		return
	}
	for range delta {
		if s.Current++; s.Current%delta == remainder {
			s.Current -= delta
			return
		}
	}
}

// Next returns an ID.
func (c *Client) Next(ctx context.Context) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.current == nil {
			if err := c.loadCurrent(ctx); err != nil {
				return 0, err
			}
		}
		s := c.current
		id, ok := s.Next()
		if !ok {
			c.current = nil
			continue
		}
		if id >= s.Loading && c.next == nil && c.loading == nil {
			c.prefetch(ctx)
		}
		return id, nil
	}
}

// Wait waits for a prefetch under way, and returns the number of loaded segments.
func (c *Client) Wait() (loads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.await()
	return c.loads
}

// prefetch loads the next segment. A failure is swallowed; the next ID tries again.
func (c *Client) prefetch(ctx context.Context) {
	loaded := make(chan struct{})
	c.loading = loaded
	go func() {
		defer close(loaded)
		s, _ := c.load(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.put(s)
		c.loading = nil
	}()
}

// loadCurrent takes the prefetched segment, or loads one. c.mu is held.
func (c *Client) loadCurrent(ctx context.Context) error {
	c.await()
	if c.next == nil {
		s, err := c.load(ctx)
		if err != nil {
			return err
		}
		c.put(s)
	}
	c.current, c.next = c.next, nil
	return nil
}

func (c *Client) put(s *Segment) {
	if s != nil {
		c.next = s
		c.loads++
	}
}

// await returns when no load is under way. c.mu is held before and after.
func (c *Client) await() {
	if loading := c.loading; loading != nil {
		c.mu.Unlock()
		<-loading
		c.mu.Lock()
	}
}

// load asks for a segment: a POST without a body, the parameters in the URL, nothing
// percent-encoded, no retry.
func (c *Client) load(ctx context.Context) (*Segment, error) {
	url := fmt.Sprintf("%s/tinyid/id/nextSegmentIdSimple?token=%s&bizType=%s", c.URL(), c.Token, c.Type)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "text/html, image/gif, image/jpeg, */*; q=0.2")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return Parse(resp.StatusCode, string(body))
}

// ErrNull is the error of an answer without a segment.
var ErrNull = errors.New("error query segmentId: null")

// Parse reads an answer: an empty one, or a status of 400 and more, has no segment.
func Parse(status int, body string) (*Segment, error) {
	body = strings.NewReplacer("\r", "", "\n", "").Replace(body)
	if status >= http.StatusBadRequest || body == "" {
		return nil, ErrNull
	}
	parts := strings.Split(body, ",")
	if len(parts) < 5 {
		return nil, fmt.Errorf("%d fields in %q", len(parts), body)
	}
	var fields [5]int64
	for i, bits := range []int{64, 64, 64, 32, 32} {
		var err error
		if fields[i], err = strconv.ParseInt(parts[i], 10, bits); err != nil {
			return nil, err
		}
	}
	return &Segment{Current: fields[0], Loading: fields[1], Max: fields[2], Delta: int32(fields[3]), Remainder: int32(fields[4])}, nil
}
