package textid

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
)

// A Number is the content of a text in a [Form].
type Number struct {
	N      int64     // not negative
	Period time.Time // the first day of the period, as a date in UTC; zero without {period}
	Key    int       // version of a mask's key, 0 … 9; 0 without {key}
}

// A Form writes numbers as text and reads them. It is safe for concurrent use.
type Form struct {
	template string
	fields   []field
	max      int64  // the highest number that fits
	digits   string // of the number
	layout   string // of the period, as package time has it; "" without {period}
	hasKey   bool
}

// A field is one part of a text.
type field struct {
	width  int // bytes; 0: as many as the number needs
	append func(dst, text []byte, v Number) []byte
	read   func(piece string, v *Number) bool // nil: the text is compared as a whole
}

// String returns the template.
func (f *Form) String() string { return f.template }

// HasPeriod reports whether the text holds the period.
func (f *Form) HasPeriod() bool { return f.layout != "" }

// HasKey reports whether the text holds the version of a mask's key.
func (f *Form) HasKey() bool { return f.hasKey }

// Max returns the highest number that fits.
func (f *Form) Max() int64 { return f.max }

// Lengths returns the bytes of the shortest text and of the longest one.
func (f *Form) Lengths() (least, most int) {
	for i := range f.fields {
		most += f.fields[i].width
		if least += f.fields[i].width; f.fields[i].width == 0 { // the number
			least++
			most += len(appendNumber(nil, f.max, f.digits, 0))
		}
	}
	return least, most
}

// Encode returns the text of v.
func (f *Form) Encode(v Number) (string, error) {
	text, err := f.Append(make([]byte, 0, 64), v) // most are shorter
	return string(text), err
}

// Append appends the text of v to dst. On an error it returns dst unchanged.
func (f *Form) Append(dst []byte, v Number) ([]byte, error) {
	if err := f.check(v); err != nil {
		return dst, err
	}
	start := len(dst)
	for i := range f.fields {
		dst = f.fields[i].append(dst, dst[start:], v)
	}
	return dst, nil
}

// check reports why f cannot write v.
func (f *Form) check(v Number) error {
	switch {
	case v.N < 0:
		return fmt.Errorf("%w: %d is negative", leaf.ErrInvalid, v.N)
	case v.N > f.max:
		return fmt.Errorf("%w: %d is above %d, the highest number of the form %s", leaf.ErrOverflow, v.N, f.max, f.template)
	case v.Key < 0 || v.Key > 9 || !f.hasKey && v.Key != 0:
		return fmt.Errorf("%w: the form %s has no place for the key version %d", leaf.ErrInvalid, f.template, v.Key)
	case v.Period.IsZero() == f.HasPeriod():
		return fmt.Errorf("%w: the form %s needs a period if it has {period}, and else none", leaf.ErrInvalid, f.template)
	case f.HasPeriod() && !f.tells(v.Period):
		return fmt.Errorf("%w: the form %s does not tell %s from other days", leaf.ErrInvalid, f.template, v.Period.Format(time.DateOnly))
	}
	return nil
}

// tells reports whether a reader of the text knows that the period begins on t.
func (f *Form) tells(t time.Time) bool {
	return t.Year() >= 1 && t.Year() <= 9999 &&
		(t.Month() == time.January || strings.Contains(f.layout, "01")) && (t.Day() == 1 || strings.Contains(f.layout, "02"))
}

// Decode returns the number that Encode wrote as text. Any other text is an error wrapping
// [leaf.ErrInvalid].
func (f *Form) Decode(text string) (v Number, err error) {
	open := len(text) // bytes of a number without a width
	for i := range f.fields {
		open -= f.fields[i].width
	}
	rest := text
	for i := range f.fields {
		part, width := &f.fields[i], f.fields[i].width
		if width == 0 {
			width = open
		}
		if width < 1 || width > len(rest) || part.read != nil && !part.read(rest[:width], &v) {
			return Number{}, f.refuse(text)
		}
		rest = rest[width:]
	}
	if again, err := f.Encode(v); err != nil || again != text {
		return Number{}, f.refuse(text)
	}
	return v, nil
}

func (f *Form) refuse(text string) error {
	return fmt.Errorf("%w: %.80q is no text of the form %s: a character is wrong, missing or too many", leaf.ErrInvalid, text, f.template)
}

// Digits of the bases.
const base10 = "0123456789"

var bases = map[string]string{
	"":       base10,
	"base10": base10,
	"base36": "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
	"base58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz", // Bitcoin's
	"base32": "0123456789ABCDEFGHJKMNPQRSTVWXYZ",                           // Crockford's
}

// appendNumber appends n, padded to width.
func appendNumber(dst []byte, n int64, digits string, width int) []byte {
	var buf [maxWidth]byte
	at, base := len(buf), uint64(len(digits))
	for u := uint64(n); u > 0 || at == len(buf); u /= base {
		at--
		buf[at] = digits[u%base]
	}
	for len(buf)-at < width {
		at--
		buf[at] = digits[0]
	}
	return append(dst, buf[at:]...)
}

func readNumber(text, digits string) (n int64, ok bool) {
	base := int64(len(digits))
	for i := range len(text) {
		d := int64(strings.IndexByte(digits, text[i]))
		if d < 0 || n > (math.MaxInt64-d)/base {
			return 0, false
		}
		n = n*base + d
	}
	return n, true
}

// highest returns the highest number of so many digits; 0 for any number of them.
func highest(base int64, width int) int64 {
	limit := int64(1)
	for range width {
		if limit > math.MaxInt64/base {
			return math.MaxInt64
		}
		limit *= base
	}
	if width == 0 {
		return math.MaxInt64
	}
	return limit - 1
}
