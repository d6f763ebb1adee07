package httpapi

import (
	"net/url"
	"strings"
)

// parseKey returns the {key} of a path that begins with prefix. As in Java Leaf, one slash may
// follow the key, and parseKey drops ";params" after it; unlike there, it keeps a dot. An encoded
// slash or semicolon belongs to the key. ok is false for another route: no key, or more than one
// segment.
func parseKey(u *url.URL, prefix string) (key string, ok bool) {
	// A URL without RawPath is one whose path has nothing encoded that would
	// mean something else when it is not: its decoded form can be taken apart.
	encoded := u.RawPath != ""
	path := u.Path
	if encoded {
		path = u.EscapedPath()
	}
	key, ok = strings.CutPrefix(path, prefix)
	if !ok {
		return "", false
	}
	key, rest, more := strings.Cut(key, "/")
	if more && rest != "" {
		return "", false
	}
	key, _, _ = strings.Cut(key, ";")
	if encoded {
		var err error
		if key, err = url.PathUnescape(key); err != nil {
			return "", false
		}
	}
	return key, key != ""
}
