package frontend

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

// ParseQuery returns the parameters, each of them known and given once. The error wraps
// [leaf.ErrInvalid].
func ParseQuery(raw string, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: the query string is malformed", leaf.ErrInvalid)
	}
	if err := CheckParams(query, known...); err != nil {
		return nil, err
	}
	for name, values := range query {
		if len(values) > 1 {
			return nil, fmt.Errorf("%w: %s is given %d times", leaf.ErrInvalid, name, len(values))
		}
	}
	return query, nil
}

// CheckParams reports, wrapping [leaf.ErrInvalid], a parameter that a route does not have.
func CheckParams(query url.Values, known ...string) error {
	for name := range query {
		if !slices.Contains(known, name) {
			return fmt.Errorf("%w: unknown parameter %q; this route has: %s", leaf.ErrInvalid, name, strings.Join(known, ", "))
		}
	}
	return nil
}

// Count returns the parameter n: a number from 1 to most, written in digits alone.
func Count(query url.Values, most int) (int, error) {
	text := query.Get("n")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%w: n must be a number from 1 to %d", leaf.ErrInvalid, most)
	}
	return n, nil
}
