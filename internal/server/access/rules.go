package access

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"
)

// rules say who may do what. They are replaced as a whole.
type rules struct {
	open         bool                         // everyone may take IDs, without limits
	anonymous    *grant                       // nil: callers without credentials may do nothing
	tokens       map[[sha256.Size]byte]*grant // by hash
	certificates map[string]*grant            // by name
	limits       []tagLimit
}

// A grant is what one kind of caller may do.
type grant struct {
	name    string // of the token; "": no credentials were shown
	rights  Right
	tags    []string  // patterns of usable tags; empty: all
	schemes []string  // likewise
	pools   []string  // patterns of pools for [Lease]; empty: all
	expires time.Time // zero: never
	limit   Limit
	denied  error // told instead of why a right is missing
}

type tagLimit struct {
	pattern string
	limit   Limit
}

// noRules are those of a nil Gate.
var noRules = withoutTokens(Options{PublicRead: true})

// withoutTokens returns the rules of a server without credentials. IDs are open, and other
// machines change nothing.
func withoutTokens(opts Options) *rules {
	r := &rules{limits: tagLimits(opts.Limits.Tags)}
	r.anonymous = &grant{rights: Take, limit: opts.Limits.Client, denied: ErrNoCredentials}
	if opts.Local {
		r.anonymous.rights |= Read | Admin | Worker | Lease
	}
	if opts.PublicRead {
		r.anonymous.rights |= Read
	}
	r.open = len(r.limits) == 0 && opts.Limits.Client == Limit{}
	return r
}

// withTokens returns the rules of a server with credentials, without which nothing goes.
func withTokens(opts Options, file *File) *rules {
	r := &rules{limits: tagLimits(opts.Limits.Tags), tokens: make(map[[sha256.Size]byte]*grant), certificates: make(map[string]*grant)}
	if opts.PublicRead {
		r.anonymous = &grant{rights: Read, denied: ErrUnauthenticated}
	}
	for _, e := range file.Tokens {
		g := e.grant(opts.Limits.Client)
		if e.Certificate != "" {
			r.certificates[e.Certificate] = g
			continue
		}
		hash, _ := parseHash(e.Hash) // it was checked
		r.tokens[hash] = g
	}
	return r
}

func tagLimits(limits map[string]Limit) []tagLimit {
	var list []tagLimit
	for _, pattern := range slices.Sorted(maps.Keys(limits)) {
		list = append(list, tagLimit{pattern, limits[pattern]})
	}
	return list
}

// matches reports whether a pattern matches text: "*" is any text, everything else itself.
func matches(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return text == pattern
	}
	text, ok := strings.CutPrefix(text, first)
	for ok {
		var part string
		if part, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
	}
	return false
}

// find returns what c may do, or why it is not known.
func (r *rules) find(c *Caller, now time.Time) (who *grant, why string) {
	if c.hash != [sha256.Size]byte{} {
		if who = r.tokens[c.hash]; who == nil && r.tokens != nil {
			return nil, "unknown token"
		}
	} else {
		for _, name := range c.names {
			if g := r.certificates[name]; g != nil && name != "" {
				who = g
				break
			}
		}
	}
	switch {
	case who != nil && !who.expires.IsZero() && !now.Before(who.expires):
		return nil, "expired: " + who.name
	case who != nil:
		return who, ""
	case r.anonymous != nil:
		return r.anonymous, ""
	}
	return nil, "no token"
}

func (g *grant) mayTake(scheme, key string) bool {
	if g.rights&Take == 0 || len(g.schemes) > 0 && !slices.Contains(g.schemes, scheme) {
		return false
	}
	return len(g.tags) == 0 || slices.ContainsFunc(g.tags, func(tag string) bool { return matches(tag, key) })
}

// refusal returns err, or another error for a caller without credentials.
func (g *grant) refusal(err error) error {
	if g.denied != nil {
		return g.denied
	}
	return err
}
