package textid

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-id/leaf"
)

// Limits of templates.
const (
	maxTemplate = 256 // bytes
	maxWidth    = 64  // places of a number
)

// pattern matches one part of a template, or a brace that does not belong there.
var pattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[^{}]+|\{(n)(?::(base10|base36|base58|base32))?(?::([1-9]\d?))?\}` +
		`|\{(period):([yMd./_-]+)\}|\{(key)\}|\{(check):([a-z0-9-]+)\}|\{[^}]*\}?|\}`)
})

// layouts turns the pattern of a period into a layout of package time.
var layouts = strings.NewReplacer("yyyy", "2006", "MM", "01", "dd", "02")

// New returns the form of a template, see the package documentation. A malformed template is an
// error wrapping [leaf.ErrInvalid].
func New(template string) (*Form, error) {
	f := &Form{template: template}
	if len(template) > maxTemplate || !utf8.ValidString(template) || strings.ContainsFunc(template, unicode.IsControl) {
		return nil, f.malformed("it is longer than %d bytes, not UTF-8, or holds a control character", maxTemplate)
	}
	for _, m := range pattern().FindAllStringSubmatch(template, -1) {
		var part field
		var err error
		switch {
		case m[1] != "":
			part, err = f.number(bases[m[2]], m[3])
		case m[4] != "":
			part, err = f.period(m[5])
		case m[6] != "":
			part, err = f.key()
		case m[7] != "":
			part, err = f.sum(m[8])
		case strings.ContainsAny(m[0], "{}"):
			err = f.malformed("%q is not {n}, {n:WIDTH}, {n:BASE}, {n:BASE:WIDTH}, {period:PATTERN}, {key} or {check:NAME}", m[0])
		default:
			part = literal(m[0])
		}
		if err != nil {
			return nil, err
		}
		f.fields = append(f.fields, part)
	}
	if f.digits == "" {
		return nil, f.malformed("it has no {n}")
	}
	if !f.readsItself() {
		return nil, f.malformed("its texts do not tell the period: write no __ before yyyy")
	}
	return f, nil
}

// readsItself reports whether f reads one of its texts as the number in it. Package time has layouts of
// its own, as __2 for the day of the year, that a pattern with separators may spell.
func (f *Form) readsItself() bool {
	v := Number{N: f.max}
	if f.HasPeriod() {
		v.Period = time.Date(2345, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	text, err := f.Encode(v)
	if err != nil {
		return false
	}
	back, err := f.Decode(text)
	return err == nil && back == v
}

func literal(text string) field {
	return field{width: len(text), append: func(dst, _ []byte, _ Number) []byte { return append(dst, text...) }}
}

func (f *Form) number(digits, places string) (field, error) {
	width, _ := strconv.Atoi(places) // the pattern has checked it
	if f.digits != "" || width > maxWidth {
		return field{}, f.malformed("it has {n} twice, or more than %d places", maxWidth)
	}
	f.digits, f.max = digits, highest(int64(len(digits)), width)
	return field{
		width:  width,
		append: func(dst, _ []byte, v Number) []byte { return appendNumber(dst, v.N, digits, width) },
		read: func(piece string, v *Number) (ok bool) {
			v.N, ok = readNumber(piece, digits)
			return ok
		},
	}, nil
}

func (f *Form) period(symbols string) (field, error) {
	layout := layouts.Replace(symbols)
	year, month, day := strings.Count(layout, "2006"), strings.Count(layout, "01"), strings.Count(layout, "02")
	if f.layout != "" || year != 1 || month > 1 || day > month || strings.ContainsAny(layout, "yMd") {
		return field{}, f.malformed("it has one period at most, of yyyy, yyyyMM or yyyyMMdd in any order, with separators -./_")
	}
	f.layout = layout
	return field{
		width:  len(layout),
		append: func(dst, _ []byte, v Number) []byte { return v.Period.AppendFormat(dst, layout) },
		read: func(piece string, v *Number) bool {
			var err error
			v.Period, err = time.Parse(layout, piece)
			return err == nil
		},
	}, nil
}

func (f *Form) key() (field, error) {
	if f.hasKey {
		return field{}, f.malformed("it has {key} twice")
	}
	f.hasKey = true
	return field{
		width:  1,
		append: func(dst, _ []byte, v Number) []byte { return append(dst, byte('0'+v.Key)) },
		read: func(piece string, v *Number) bool {
			v.Key = int(piece[0]) - '0'
			return true
		},
	}, nil
}

func (f *Form) sum(name string) (field, error) {
	c, ok := checks[name]
	switch {
	case !ok:
		return field{}, f.malformed("the check digits are luhn, mod11-10 or mod97-10")
	case f.digits == "":
		return field{}, f.malformed("check digits cover the text before them: they follow {n}")
	case f.digits != base10 && (!c.letters || f.digits == bases["base58"]):
		return field{}, f.malformed("%s does not cover letters of the number: use base10, or mod97-10 with base36 or base32", name)
	}
	return field{width: c.width, append: func(dst, text []byte, _ Number) []byte { return c.sum(dst, text) }}, nil
}

func (f *Form) malformed(format string, args ...any) error {
	return fmt.Errorf("%w: the form %.80q is malformed: %s", leaf.ErrInvalid, f.template, fmt.Sprintf(format, args...))
}
