package load

import (
	"errors"
	"testing"
	"time"
)

func TestRESPAnswers(t *testing.T) {
	tests := []struct {
		name   string
		scheme string
		text   string // the answer to a pipeline of two calls for 3 IDs each
		want   [2]string
	}{
		{"the last of three", "segment", ":3\r\n:9\r\n", [2]string{"1-3", "7-9"}},
		{"an error and IDs", "segment", "-ERR unknown tag\r\n:9\r\n", [2]string{"Redis ERR: unknown tag", "7-9"}},
		{"strings", "snowflake", "*3\r\n$1\r\n5\r\n$1\r\n6\r\n$2\r\n70\r\n*3\r\n:1\r\n:2\r\n:3\r\n", [2]string{"5-6 70", "1-3"}},
		{"an error within an answer", "uid", "*3\r\n:1\r\n-ERR oops\r\n:3\r\n*1\r\n:4\r\n", [2]string{"Redis ERR: oops", "4"}},
		{"null", "uid", "$-1\r\n:9\r\n", [2]string{"answer without IDs: null", "9"}},
		{"below 0", "segment", ":1\r\n:-7\r\n", [2]string{"answer without IDs: the range [-1, 2)", "answer without IDs: -7"}},
		{"cut short", "uid", ":1\r\n$5\r\n12", [2]string{"1", "connection closed by the server"}},
		{"nothing", "segment", "", [2]string{"connection closed by the server", "connection closed by the server"}},
		{"HTTP", "segment", "HTTP/1.1 400 Bad Request\r\n\r\n", [2]string{kindOther, kindOther}},
		{"arrays of arrays", "uid", "*1\r\n*1\r\n:1\r\n", [2]string{kindOther, kindOther}},
		{"a huge string", "uid", "$1000000000\r\n1", [2]string{kindOther, kindOther}},
		{"no number", "uid", "$x\r\n1\r\n", [2]string{kindOther, kindOther}},
		{"an empty line", "uid", "\r\n:1\r\n", [2]string{kindOther, kindOther}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			target := &RESP{Server{Addr: serveText(t, []string{tt.text}), Timeout: 30 * time.Second}, tt.scheme}
			conn := target.Open()
			defer conn.Close()
			calls := []*Call{{Key: "order", Count: 3}, {Key: "order", Count: 3}}
			conn.Do(t.Context(), calls)
			for i, c := range calls {
				if got := outcome(c); got != tt.want[i] {
					t.Errorf("call %d: %q, want %q", i, got, tt.want[i])
				}
			}
		})
	}
}

// outcome returns the IDs of a call, or the kind of its error with the server's message.
func outcome(c *Call) string {
	if c.Err == nil {
		return rangesText(&c.IDs)
	}
	kind, text := kindOf(c.Err)
	if _, said := errors.AsType[*Failure](c.Err); said && text != "" {
		return kind + ": " + text
	}
	return kind
}
