package httpapi

import (
	"slices"
	"strconv"
	"strings"
)

// A format is one of the content types that Java Leaf's routes answer with.
type format int

const (
	asText format = iota
	asHTML
	asJSON
)

// Values of Content-Type, written as Java Leaf writes them.
var (
	plainText = []string{"text/plain;charset=UTF-8"}
	htmlText  = []string{"text/html;charset=UTF-8"}
	jsonText  = []string{"application/json;charset=UTF-8"}

	contentTypes = [...][]string{asText: plainText, asHTML: htmlText, asJSON: jsonText}
)

// negotiate picks the preferred format of an Accept header. A named format wins over a wildcard,
// then the higher q, then the first. Without a named one it is text.
func negotiate(accept []string) format {
	if len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*" {
		return asText
	}
	best, bestQ := asText, 0.0
	for _, value := range accept {
		for media := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(media, ";")
			name = strings.TrimSpace(name)
			f := slices.IndexFunc(mediaTypes, func(known string) bool { return strings.EqualFold(known, name) })
			if f < 0 {
				continue
			}
			if q := quality(params); q > bestQ {
				best, bestQ = format(f), q
			}
		}
	}
	return best
}

// mediaTypes are the names of formats in an Accept header.
var mediaTypes = []string{asText: "text/plain", asHTML: "text/html", asJSON: "application/json"}

// quality returns the q among the parameters of a media type: 1 without one, 0 for an unreadable
// one.
func quality(params string) float64 {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		q, err := strconv.ParseFloat(value, 64)
		if err != nil || q < 0 || q > 1 { // NaN fails neither and wins over nothing
			return 0
		}
		return q
	}
	return 1
}
