package respapi

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Bounds on one command. The largest that makes sense here is far smaller.
const (
	maxArgs   = 1024
	maxSize   = 64 << 10 // bytes, with its framing
	maxHeader = 24       // bytes of a line that holds a length
)

// limits bound one command.
type limits struct {
	args int // how many
	size int // bytes, with its framing
}

// The limits for known callers, and for others, who can only authenticate.
var (
	knownLimits   = limits{args: maxArgs, size: maxSize}
	unknownLimits = limits{args: 10, size: 4 << 10}
)

// parse appends the arguments of the first command in buf to args, which point into buf if
// possible, and returns its size: 0 if it is incomplete. A command without arguments is valid, and
// skipped. After an error the beginning of the next command is unknown.
func parse(buf []byte, args [][]byte, lim limits) (_ [][]byte, size int, err error) {
	switch {
	case len(buf) == 0:
		return args, 0, nil
	case buf[0] == '*':
		args, size, err = parseArray(buf, args, lim)
	default:
		args, size, err = parseInline(buf, args, lim)
	}
	if err == nil && size == 0 && len(buf) >= lim.size {
		err = errors.New("too big request")
	}
	return args, size, err
}

func parseArray(buf []byte, args [][]byte, lim limits) (_ [][]byte, size int, err error) {
	count, pos, ok := parseLength(buf[1:])
	switch {
	case !ok || count > int64(lim.args):
		return args, 0, errors.New("invalid multibulk length")
	case pos == 0:
		return args, 0, nil
	}
	pos++
	for range count {
		if pos >= len(buf) {
			return args, 0, nil
		}
		if buf[pos] != '$' {
			return args, 0, fmt.Errorf("expected '$', got %s", strconv.QuoteRune(rune(buf[pos])))
		}
		length, n, ok := parseLength(buf[pos+1:])
		if !ok || length < 0 || length > int64(lim.size) {
			return args, 0, errors.New("invalid bulk length")
		}
		start := pos + 1 + n
		end := start + int(length)
		switch {
		case end+2 > lim.size:
			return args, 0, errors.New("too big request")
		case n == 0 || len(buf) < end+2:
			return args, 0, nil
		case buf[end] != '\r' || buf[end+1] != '\n':
			return args, 0, errors.New("expected CRLF at the end of a bulk string")
		}
		args = append(args, buf[start:end:end])
		pos = end + 2
	}
	return args, pos, nil
}

// parseLength reads a number and the end of its line, and returns the size of both: 0 if the
// line is not there as a whole.
func parseLength(buf []byte) (n int64, size int, ok bool) {
	cr := bytes.IndexByte(buf[:min(len(buf), maxHeader)], '\r')
	switch {
	case cr < 0:
		return 0, 0, len(buf) < maxHeader
	case len(buf) < cr+2:
		return 0, 0, true
	case buf[cr+1] != '\n':
		return 0, 0, false
	}
	digits := buf[:cr]
	negative := cr > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 10 {
		return 0, 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, 0, false
		}
		n = 10*n + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, cr + 2, true
}

// parseInline reads a command that someone has typed: words on a line.
func parseInline(buf []byte, args [][]byte, lim limits) (_ [][]byte, size int, err error) {
	end := bytes.IndexByte(buf[:min(len(buf), lim.size)], '\n')
	if end < 0 {
		if len(buf) >= lim.size {
			err = errors.New("too big inline request")
		}
		return args, 0, err
	}
	line := bytes.TrimSuffix(buf[:end], []byte("\r"))
	for {
		line = bytes.TrimLeft(line, " \t\r\v\f\x00")
		if len(line) == 0 {
			return args, end + 1, nil
		}
		word, n, ok := parseWord(line)
		if !ok {
			return args, 0, errors.New("unbalanced quotes in request")
		}
		if len(args) == maxArgs {
			return args, 0, errors.New("too big inline request")
		}
		args, line = append(args, word), line[n:]
	}
}

// parseWord parses the first word of line, with or without redis-cli's quotes, and returns its
// length in line.
func parseWord(line []byte) (word []byte, size int, ok bool) {
	quote := line[0]
	if quote != '"' && quote != '\'' {
		size = bytes.IndexAny(line, " \t\r\v\f\x00")
		if size < 0 {
			size = len(line)
		}
		return line[:size:size], size, !bytes.ContainsAny(line[:size], `"'`)
	}
	for pos := 1; pos < len(line); pos++ {
		switch c := line[pos]; {
		case c == quote:
			pos++
			return word, pos, pos == len(line) || bytes.IndexByte([]byte(" \t\r\v\f\x00"), line[pos]) >= 0
		case c == '\\' && pos+1 < len(line):
			b, n := unescape(line[pos+1:], quote)
			word = append(word, b)
			pos += n
		default:
			word = append(word, c)
		}
	}
	return nil, 0, false
}

// unescape returns the byte for the escape after a backslash, and the length of the escape: 0 if
// the backslash means itself.
func unescape(s []byte, quote byte) (b byte, size int) {
	if quote == '\'' {
		if s[0] == '\'' {
			return '\'', 1
		}
		return '\\', 0
	}
	if s[0] == 'x' && len(s) > 2 {
		if n, err := strconv.ParseUint(string(s[1:3]), 16, 8); err == nil {
			return byte(n), 3
		}
	}
	if i := bytes.IndexByte([]byte("nrtba"), s[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return s[0], 1
}
