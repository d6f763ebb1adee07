package fastlane

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

const (
	maxBatch   = 1000 // IDs that the lane writes one by one; net/http takes turns with longer answers
	keepRanges = 16   // of a batch, that a connection has memory for
)

// parseBatch reads a query of n and ranges alone.
func (s *session) parseBatch(query []byte, want *target) bool {
	if want.api != 1 || issuer.SchemeOf(want.scheme).Text {
		return false
	}
	first, second, more := bytes.Cut(query, []byte("&"))
	if !parseParam(first, want) || more && !parseParam(second, want) {
		return false
	}
	if want.ranges {
		want.n = max(want.n, 1)
		return want.n <= s.IDs.MaxRange()
	}
	return want.n <= min(maxBatch, s.IDs.MaxBatch())
}

// parseParam reads a parameter that want does not have yet.
func parseParam(param []byte, want *target) bool {
	if string(param) == "ranges=1" {
		again := want.ranges
		want.ranges = true
		return !again
	}
	digits, ok := bytes.CutPrefix(param, []byte("n="))
	if !ok || want.n > 0 || len(digits) == 0 || len(digits) > 9 || digits[0] == '0' {
		return false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
		want.n = 10*want.n + int(c-'0')
	}
	return true
}

// issueBatch is issue for many IDs.
func (s *session) issueBatch(ctx context.Context, out []byte, now time.Time) ([]byte, error) {
	ranges, err := s.IDs.AppendRanges(ctx, s.want.scheme, s.want.key, s.ranges[:0], s.want.n)
	if err != nil {
		return out, err
	}
	if s.ranges = ranges; cap(ranges) > keepRanges {
		s.ranges = nil
	}
	size, body := frontend.IDsSize, frontend.AppendIDs
	if s.want.ranges {
		size, body = frontend.RangesSize, frontend.AppendRanges
	}
	out = append(out, "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: "...)
	out = strconv.AppendInt(out, int64(size(ranges)), 10)
	return body(append(out, s.headsAt(now).batch...), ranges), nil
}
