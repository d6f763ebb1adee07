package drivers

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/edit"
)

// Parameters of every worker URL that has parameters.
const (
	paramReclaim    = "reclaim"
	paramClaimDelay = "claim_delay"
)

// cutTerms takes the parameters that every worker URL may have out of a URL's query.
// assigned says that its registry says which worker ID to use.
func cutTerms(params url.Values, assigned bool) (Terms, error) {
	var t Terms
	if params.Has(paramReclaim) {
		switch {
		case params.Get(paramReclaim) != "machine":
			return t, fmt.Errorf("%w: %s: the only value is machine", leaf.ErrInvalid, paramReclaim)
		case !assigned:
			return t, fmt.Errorf("%w: %s=machine is for worker IDs that are assigned (static:, zookeeper: with layout=leaf); "+
				"here another one is claimed instead", leaf.ErrInvalid, paramReclaim)
		}
		t.Reclaim = true
	}
	if params.Has(paramClaimDelay) {
		d, err := time.ParseDuration(params.Get(paramClaimDelay))
		if err != nil || d < 0 {
			return t, fmt.Errorf("%w: %s is no duration such as 30s, or 0", leaf.ErrInvalid, paramClaimDelay)
		}
		if t.ClaimDelay = d; d == 0 {
			t.ClaimDelay = -1
		}
	}
	params.Del(paramReclaim)
	params.Del(paramClaimDelay)
	return t, nil
}

// parseParams reads the query of a URL.
func parseParams(query string) (url.Values, error) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("%w: the parameters are malformed", leaf.ErrInvalid)
	}
	for name, values := range params {
		if len(values) > 1 {
			return nil, fmt.Errorf("%w: parameter %q is given more than once", leaf.ErrInvalid, name)
		}
	}
	return params, nil
}

// onlyParams reports the first parameter that is not among known. Those of every
// worker URL have been taken out of one, but may be what was meant.
func onlyParams(params url.Values, known ...string) error {
	workers := []string{paramReclaim, paramClaimDelay}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		if slices.Contains(known, name) {
			continue
		}
		if slices.Contains(workers, name) {
			return fmt.Errorf("%w: %s is for worker IDs: give it in --workers", leaf.ErrInvalid, name)
		}
		return fmt.Errorf("%w: %s", leaf.ErrInvalid, unknownParam(name, append(known, workers...)))
	}
	return nil
}

// unknownParam says what is wrong with the name of a parameter.
func unknownParam(name string, known []string) string {
	text := fmt.Sprintf("unknown parameter %q (known: %s)", name, strings.Join(known, ", "))
	if near := nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text
}

// nearest returns the one of names that was most likely meant, or "".
func nearest(text string, names []string) string {
	best, least := "", 3 // more than two typing errors are no typing error
	for _, n := range names {
		if d := edit.Distance(strings.ToLower(text), n); d < least {
			best, least = n, d
		}
	}
	return best
}

// hostPort returns host:port, in small letters, of a host with or without a port.
func hostPort(host, defaultPort string) (string, bool) {
	u := url.URL{Host: host}
	port := cmp.Or(u.Port(), defaultPort)
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 || u.Hostname() == "" ||
		strings.ContainsAny(u.Hostname(), " /@:") && !strings.HasPrefix(host, "[") {
		return "", false
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port), true
}
