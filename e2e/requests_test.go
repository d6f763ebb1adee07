package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

// A request is one on a connection that a test reads and writes itself.
type request struct {
	space string
	n     int // of IDs
	text  string
	read  func(r *bufio.Reader, n int) ([]leaf.Range, error)
}

// errRefused is a server's refusal, with its reason.
var errRefused = errors.New("refused")

// errMisfit is an answer that does not fit its request.
var errMisfit = errors.New("the answer does not fit the request")

// answer reads the answer to a request, and compares the number of IDs.
func (q *request) answer(r *bufio.Reader) ([]leaf.Range, error) {
	ranges, err := q.read(r, q.n)
	if err != nil {
		return nil, err
	}
	got := int64(0)
	for _, ids := range ranges {
		got += ids.Len()
	}
	if got != int64(q.n) {
		return nil, fmt.Errorf("%w: %d IDs instead of %d", errMisfit, got, q.n)
	}
	return ranges, nil
}

// increment is INCR, or INCRBY.
func increment(tag string, n int) request {
	text := "INCR " + tag + "\r\n"
	if n > 1 {
		text = fmt.Sprintf("INCRBY %s %d\r\n", tag, n)
	}
	return request{tag, n, text, func(r *bufio.Reader, n int) ([]leaf.Range, error) {
		last, err := replyInteger(r)
		if err == nil && last < int64(n) {
			err = fmt.Errorf("%w: %d", errMisfit, last)
		}
		return []leaf.Range{{Start: last - int64(n) + 1, End: last + 1}}, err
	}}
}

// next is LEAF.NEXT for n IDs, each in the answer.
func next(scheme, key string, n int) request {
	return request{key, n, fmt.Sprintf("LEAF.NEXT %s %s COUNT %d\r\n", scheme, key, n), func(r *bufio.Reader, _ int) ([]leaf.Range, error) {
		line, err := replyLine(r, '*')
		if err != nil {
			return nil, err
		}
		count, err := strconv.Atoi(line)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMisfit, err)
		}
		var all []leaf.Range
		for range count {
			size, err := replyLine(r, '$')
			if err != nil {
				return nil, err
			}
			text, err := r.ReadString('\n')
			if err != nil {
				return nil, err
			}
			text = strings.TrimSuffix(text, "\r\n")
			if size != strconv.Itoa(len(text)) {
				return nil, fmt.Errorf("%w: %.80q has not %s bytes", errMisfit, text, size)
			}
			id, err := parseAnswer(text)
			if err != nil {
				return nil, err
			}
			all = addID(all, id)
		}
		return all, nil
	}}
}

func replyInteger(r *bufio.Reader) (int64, error) {
	line, err := replyLine(r, ':')
	if err != nil {
		return 0, err
	}
	return parseAnswer(line)
}

// replyLine reads a line of the Redis protocol that begins with kind.
func replyLine(r *bufio.Reader, kind byte) (string, error) {
	line, err := r.ReadString('\n')
	switch {
	case err != nil:
		return "", err
	case line[0] == '-':
		return "", fmt.Errorf("%w: %s", errRefused, line)
	case line[0] != kind || len(line) < 4 || !strings.HasSuffix(line, "\r\n"):
		return "", fmt.Errorf("%w: %.80q", errMisfit, line)
	}
	return line[1 : len(line)-2], nil
}

func parseAnswer(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%w: %.80q", errMisfit, text)
	}
	return id, nil
}

// addID adds an ID to ranges, to the last one if it follows that.
func addID(all []leaf.Range, id int64) []leaf.Range {
	if last := len(all) - 1; last >= 0 && all[last].End == id {
		all[last].End++
		return all
	}
	return append(all, leaf.Range{Start: id, End: id + 1})
}

// route is Java Leaf's route.
func route(scheme, key string, n int) request {
	path := "/api/" + scheme + "/get/" + key
	if n > 1 {
		path += fmt.Sprint("?n=", n)
	}
	return request{key, n, "GET " + path + " HTTP/1.1\r\nHost: leaf\r\n\r\n", readRoute}
}

// getMethod is what [http.ReadResponse] has to know of a request.
var getMethod = &http.Request{Method: http.MethodGet}

func readRoute(r *bufio.Reader, _ int) (all []leaf.Range, err error) {
	answer, err := http.ReadResponse(r, getMethod)
	if err != nil {
		if strings.Contains(err.Error(), "malformed") {
			err = fmt.Errorf("%w: %w", errMisfit, err)
		}
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: %s: %.80q", errRefused, answer.Status, body)
	}
	for line := range bytes.FieldsSeq(body) {
		id, err := parseAnswer(string(line))
		if err != nil {
			return nil, err
		}
		all = addID(all, id)
	}
	return all, nil
}

// respRequests returns requests over the Redis protocol, often some alike in a row.
func respRequests(rng *rand.Rand, n int) (all []request) {
	for len(all) < n {
		tag := clientTags[rng.IntN(len(clientTags))].Name
		var q request
		switch rng.IntN(6) {
		case 0:
			q = increment(tag, 2+rng.IntN(200))
		case 1:
			q = next("segment", tag, 1+rng.IntN(50))
		case 2:
			q = next("snowflake", "times", 1+rng.IntN(20))
		default:
			q = increment(tag, 1)
		}
		for range 1 + rng.IntN(30) {
			all = append(all, q)
		}
	}
	return all
}

// httpRequests returns requests over HTTP; single ones are those of one ID.
func httpRequests(rng *rand.Rand, n int, single bool) (all []request) {
	for range n {
		most := 1
		if !single && rng.IntN(8) == 0 {
			most = 300
		}
		if rng.IntN(5) == 0 {
			all = append(all, route("snowflake", "times", 1+rng.IntN(min(most, 20))))
		} else {
			all = append(all, route("segment", clientTags[rng.IntN(len(clientTags))].Name, 1+rng.IntN(most)))
		}
	}
	return all
}

// closeWrite tells the server that no more comes.
func closeWrite(conn net.Conn) error { return conn.(interface{ CloseWrite() error }).CloseWrite() }
