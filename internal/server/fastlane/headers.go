package fastlane

import (
	"bytes"
	"strings"
)

// A headerKind is the effect of a header.
type headerKind int

const (
	harmless headerKind = iota // it changes nothing
	host
	accept
	authorization
	connection
	userAgent
	kinds
)

// known are the known headers, in lower case.
var known = map[string]headerKind{
	"host":              host,
	"accept":            accept,
	"authorization":     authorization,
	"connection":        connection,
	"user-agent":        userAgent,
	"accept-encoding":   harmless, // nothing is encoded
	"accept-language":   harmless,
	"cache-control":     harmless,
	"pragma":            harmless,
	"forwarded":         harmless, // the address of a client is that of its connection
	"via":               harmless,
	"x-forwarded-for":   harmless,
	"x-forwarded-host":  harmless,
	"x-forwarded-port":  harmless,
	"x-forwarded-proto": harmless,
	"x-real-ip":         harmless,
}

const longestName = 17

// headers are those of one request.
type headers struct {
	seen   [kinds]bool
	accept []byte
	token  []byte
}

// add takes in a line; false: net/http has to look at it.
func (h *headers) add(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	if colon < 1 || colon > longestName || !isPlain(line) {
		return false
	}
	kind, ok := kindOf(line[:colon])
	if !ok || kind != harmless && h.seen[kind] {
		return false
	}
	h.seen[kind] = true
	value := bytes.Trim(line[colon+1:], " ")
	switch kind {
	case host:
		return isHost(value)
	case accept:
		h.accept = value
		return len(value) > 0
	case authorization:
		h.token, ok = bytes.CutPrefix(value, []byte("Bearer "))
		return ok && len(h.token) > 0 && bytes.IndexByte(h.token, ' ') < 0
	case connection:
		return string(value) == "keep-alive" || string(value) == "Keep-Alive"
	case userAgent: // browsers get more headers
		return !bytes.HasPrefix(value, []byte("Mozilla/"))
	}
	return true
}

func kindOf(name []byte) (headerKind, bool) {
	var lower [longestName]byte
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	kind, ok := known[string(lower[:len(name)])]
	return kind, ok
}

// isPlain reports whether a line holds nothing that does not print.
func isPlain(line []byte) bool {
	for _, c := range line {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// isHost reports whether a host is a name or an address, perhaps with a port.
func isHost(value []byte) bool {
	for _, c := range value {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._:[]", c) >= 0:
		default:
			return false
		}
	}
	return len(value) > 0
}

// answersText reports whether Java Leaf's routes answer a request with this Accept header
// with text.
func answersText(accept []byte) bool {
	switch string(accept) {
	case "", "*/*", "text/plain", "text/plain, */*":
		return true
	}
	return false
}
