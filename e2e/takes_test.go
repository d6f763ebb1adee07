package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
)

// maxBatch is the most IDs that a server gives at once by default.
const maxBatch = 10_000

// take asks for n IDs of the scheme snowflake in the layout that key selects.
func (s *server) take(key string, n int) ([]leaf.Range, error) {
	return s.takeOf("snowflake", key, n)
}

// takeOf asks for n IDs of a scheme. They come as ranges, so that a test can compare
// tens of millions of them.
func (s *server) takeOf(scheme, key string, n int) ([]leaf.Range, error) {
	request, err := json.Marshal(map[string]any{"scheme": scheme, "key": key, "count": n})
	if err != nil {
		return nil, err
	}
	resp, err := client.Post(s.url+"/leaf.v1.LeafService/Take", "application/json", bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, body)
	}
	var answer struct {
		Ranges []struct {
			Start int64 `json:"start,string"`
			End   int64 `json:"end,string"`
		} `json:"ranges"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, err
	}
	var ranges []leaf.Range
	for _, r := range answer.Ranges {
		ranges = append(ranges, leaf.Range{Start: r.Start, End: r.End})
		n -= int(r.End - r.Start)
	}
	if n != 0 {
		return nil, fmt.Errorf("%w: %d IDs are missing in %s", errMisfit, n, body)
	}
	return ranges, nil
}

// snowflake returns one ID by Java Leaf's own route.
func (s *server) snowflake(key string) (int64, error) {
	body, err := get(s.url + "/api/snowflake/get/" + key)
	if err != nil {
		return 0, err
	}
	var id int64
	_, err = fmt.Sscan(body, &id)
	return id, err
}

// awaitSnowflake returns the first ID once the server gives any.
func (s *server) awaitSnowflake(limit time.Duration) (id int64) {
	s.t.Helper()
	until(s.t, limit, "serving time-based IDs", func() (err error) {
		id, err = s.snowflake("x")
		return err
	})
	return id
}

// workerOf returns the worker ID in an ID of the layout leaf.
func workerOf(id int64) int64 { return id >> 12 & 1023 }

// worker returns the worker ID that the server uses now.
func (s *server) worker() int64 {
	s.t.Helper()
	id, err := s.snowflake("x")
	if err != nil {
		s.t.Fatal(err)
	}
	return workerOf(id)
}

// logged waits until the server has logged text.
func (s *server) logged(limit time.Duration, text string) {
	s.t.Helper()
	until(s.t, limit, "logged", func() error {
		if !strings.Contains(s.output(), text) {
			return fmt.Errorf("%q is missing in\n%s", text, s.output())
		}
		return nil
	})
}

// readiness returns the answer of /readyz, with any status.
func (s *server) readiness() string {
	s.t.Helper()
	resp, err := client.Get(s.url + "/readyz?verbose")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(body)
}

// takes are clients that ask for IDs without a pause; they come as ranges.
type takes struct {
	tally
	seen drivertest.Ranges
}

// add records IDs that came in.
func (l *takes) add(ranges ...leaf.Range) {
	l.seen.Add(ranges...)
	for _, r := range ranges {
		l.count.Add(r.Len())
	}
}

// startTakes has each of clients ask whichever server pick returns for n IDs at a
// time, until it is stopped.
func startTakes(t testing.TB, clients, n int, pick func(client int) *server) *takes {
	return startTakesOf(t, "snowflake", "x", clients, n, pick)
}

// startTakesOf is startTakes with the IDs of a scheme and key.
func startTakesOf(t testing.TB, scheme, key string, clients, n int, pick func(client int) *server) *takes {
	l := new(takes)
	ctx := l.begin(t)
	for c := range clients {
		l.wg.Go(func() {
			for ctx.Err() == nil {
				ranges, err := pick(c).takeOf(scheme, key, n)
				if err != nil {
					l.fail(err)
					time.Sleep(time.Millisecond)
					continue
				}
				l.add(ranges...)
			}
		})
	}
	return l
}

// check compares every ID with every other one.
func (l *takes) check(t testing.TB) {
	t.Helper()
	if err := l.seen.Check(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d IDs, no duplicate; %d failed calls (first: %v)", l.count.Load(), l.errors.Load(), l.firstError())
}
