package datadir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/segment"
)

// A key names a counter across stores.
type key struct{ store, tag string }

// A record is one line of a marks file: either the mark of a source of a counter,
//
//	mark "STORE" "TAG" "SOURCE" HIGH "SERVER"
//
// or that nothing before it on the counter counts any more,
//
//	forget "STORE" "TAG"
//
// with strings quoted as in Go, so that any of them fits a line and comes back
// byte for byte.
type record struct {
	key
	forget bool
	source string
	mark   segment.Mark
}

// errRecord is all there is to say of a line that is no record.
var errRecord = errors.New("not a record of marks")

// line writes the record as a line, with its end.
func (r record) line() string {
	if r.forget {
		return fmt.Sprintf("forget %q %q\n", r.store, r.tag)
	}
	return fmt.Sprintf("mark %q %q %q %d %q\n", r.store, r.tag, r.source, r.mark.High, r.mark.Server)
}

// parseRecord reads a line without its end.
func parseRecord(line string) (r record, err error) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "forget":
		r.forget = true
		rest, err = quoted(rest, "", &r.store, &r.tag)
	case "mark":
		var high string
		if rest, err = quoted(rest, " ", &r.store, &r.tag, &r.source); err != nil {
			return record{}, err
		}
		high, rest, _ = strings.Cut(rest, " ")
		if r.mark.High, err = strconv.ParseInt(high, 10, 64); err != nil || r.mark.High < 0 {
			return record{}, errRecord
		}
		rest, err = quoted(rest, "", &r.mark.Server)
	default:
		return record{}, errRecord
	}
	if err != nil || rest != "" {
		return record{}, errRecord
	}
	return r, nil
}

// quoted reads quoted strings from the front of s, one space between them and end
// behind the last, and returns the rest.
func quoted(s, end string, into ...*string) (rest string, err error) {
	for i, to := range into {
		q, err := strconv.QuotedPrefix(s)
		if err != nil || q[0] != '"' {
			return "", errRecord
		}
		if *to, err = strconv.Unquote(q); err != nil {
			return "", errRecord
		}
		behind := " "
		if i == len(into)-1 {
			behind = end
		}
		var ok bool
		if s, ok = strings.CutPrefix(s[len(q):], behind); !ok {
			return "", errRecord
		}
	}
	return s, nil
}

// A content is what the records of one file add up to.
type content map[key]map[string]segment.Mark

// apply adds a record; the last one of a source wins.
func (c content) apply(r record) {
	if r.forget {
		delete(c, r.key)
		return
	}
	if c[r.key] == nil {
		c[r.key] = make(map[string]segment.Mark)
	}
	c[r.key][r.source] = r.mark
}

// lines writes the content as the fewest lines.
func (c content) lines() string {
	var b strings.Builder
	for k, sources := range c {
		for source, mark := range sources {
			b.WriteString(record{key: k, source: source, mark: mark}.line())
		}
	}
	return b.String()
}
