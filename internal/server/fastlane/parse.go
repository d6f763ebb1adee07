package fastlane

import (
	"bytes"
	"strings"

	"golang.org/x/net/http2"

	"github.com/leaf-id/leaf/internal/issuer"
)

// A parseResult is the lane's knowledge of the first request of some input.
type parseResult int

const (
	incomplete parseResult = iota // more of it may be understood
	understood
	unusual // it is for net/http
	preface // of HTTP/2, likewise
)

// maxHead is how long a request may be here.
const maxHead = 4 << 10

// next looks at the first request of in, and returns its size if it is understood.
func (s *session) next(in []byte) (size int, v parseResult) {
	if len(s.last) > 0 && bytes.HasPrefix(in, s.last) {
		return len(s.last), understood
	}
	if s.passedOver(in) {
		return 0, incomplete
	}
	if !s.served && mayBegin(in, http2.ClientPreface) {
		if len(in) < len(http2.ClientPreface) {
			return 0, incomplete
		}
		return 0, preface
	}
	size, v = s.parse(in[:min(len(in), maxHead)])
	if v == incomplete && len(in) >= maxHead {
		v = unusual
	}
	if s.last = s.last[:0]; v == understood {
		s.last = append(s.last, in[:size]...)
	}
	return size, v
}

// parse parses a request, and stores its target and caller.
func (s *session) parse(in []byte) (size int, v parseResult) {
	line, size, v := nextLine(in, 0)
	switch {
	case v == incomplete && mayBegin(in, get):
		return 0, incomplete
	case v != understood || !s.parseTarget(line):
		return 0, unusual
	}
	var h headers
	for {
		if line, size, v = nextLine(in, size); v != understood {
			return 0, v
		}
		if len(line) == 0 {
			break
		}
		if !h.add(line) {
			return 0, unusual
		}
	}
	if !h.seen[host] || s.want.api == 0 && !answersText(h.accept) || !s.identified(h.token) {
		return 0, unusual
	}
	return size, understood
}

// nextLine returns the line that begins at pos, without its end, and where the next one begins.
func nextLine(in []byte, pos int) (line []byte, next int, v parseResult) {
	end := bytes.IndexByte(in[pos:], '\n')
	switch {
	case end < 0:
		return nil, 0, incomplete
	case end == 0 || in[pos+end-1] != '\r':
		return nil, 0, unusual
	}
	return in[pos : pos+end-1], pos + end + 1, understood
}

const (
	get     = "GET /"
	version = " HTTP/1.1"
)

// mayBegin reports whether in, with more behind it, may begin with text.
func mayBegin(in []byte, text string) bool {
	n := min(len(in), len(text))
	return string(in[:n]) == text[:n]
}

// parseTarget reads the request line.
func (s *session) parseTarget(line []byte) bool {
	if len(line) < len(get)+len(version) || string(line[:len(get)]) != get || string(line[len(line)-len(version):]) != version {
		return false
	}
	path, query, more := bytes.Cut(line[len(get)-1:len(line)-len(version)], []byte("?"))
	want, ok := s.targets.Get(path)
	if !ok {
		text := string(path)
		if want, ok = targetOf(text); ok {
			s.targets.Put(text, want)
		}
	}
	if more {
		ok = ok && s.parseBatch(query, &want)
	}
	if ok {
		s.want = want
	}
	return ok
}

const v1Prefix = "/v1/ids/"

// targetOf returns the target of a path; false: the path does not name one ID, or needs a closer
// look.
func targetOf(path string) (t target, ok bool) {
	if names, is := strings.CutPrefix(path, v1Prefix); is {
		t = target{api: 1}
		t.scheme, t.key, _ = strings.Cut(names, "/")
		return t, issuer.SchemeOf(t.scheme).Name == t.scheme && isKey(t.key)
	}
	for _, s := range issuer.Schemes {
		if key, is := strings.CutPrefix(path, s.Path); is {
			cut := s.Java && s.Tags && strings.Contains(key, ".") // the name may have to be cut there
			return target{scheme: s.Name, key: key}, isKey(key) && !cut
		}
	}
	return t, false
}

// isKey reports whether a key is literal in a path.
func isKey(key string) bool {
	if key == "" || len(key) > 128 || strings.Trim(key, ".") == "" {
		return false
	}
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':':
		default:
			return false
		}
	}
	return true
}

// identified takes in who sends a request with this token; false: it is not known.
func (s *session) identified(token []byte) bool {
	if s.Access.Open() {
		s.caller = nil
		return true
	}
	if s.caller == nil || s.token != string(token) {
		s.token = string(token)
		s.caller = s.identify(s.token)
	}
	return s.caller != nil
}
