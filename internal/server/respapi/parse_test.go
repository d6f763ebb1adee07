package respapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
)

// parseAll returns the commands at the beginning of input, and the error behind them. With
// trickling it sees one more byte at a time, as from a slow client.
func parseAll(input []byte, trickling bool) (commands [][]string, problem string) {
	end := len(input)
	if trickling {
		end = 0
	}
	for start := 0; ; {
		args, size, err := parse(input[start:end], nil, knownLimits)
		switch {
		case err != nil:
			return commands, err.Error()
		case size > 0:
			start += size
			if len(args) > 0 {
				command := make([]string, len(args))
				for i, a := range args {
					command[i] = string(a)
				}
				commands = append(commands, command)
			}
		case end == len(input):
			return commands, ""
		default:
			end++
		}
	}
}

func TestParse(t *testing.T) {
	long := strings.Repeat("x", maxSize)
	for _, tt := range []struct {
		input   string
		want    string // as fmt prints it
		problem string
	}{
		{"*2\r\n$4\r\nINCR\r\n$5\r\norder\r\n", "[[INCR order]]", ""},
		{"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPI", "[[PING] [PING]]", ""},
		{"*1\r\n$0\r\n\r\n", "[[]]", ""},
		{"*1\r\n$4\r\n\r\n\r\n\r\n", "[[\r\n\r\n]]", ""},
		{"*0\r\n*-1\r\n\r\n \r\nPING\r\n", "[[PING]]", ""},
		{"PING\nPING a  b\t\r\n", "[[PING] [PING a b]]", ""},
		{`SET "a b" 'c d' "\x41\n\"" '\'\n' "" \q` + "\n", "[[SET a b c d A\n\" '\\n  \\q]]", ""},
		{"a\"b\n", "[]", "unbalanced quotes in request"},
		{"\"ab\n", "[]", "unbalanced quotes in request"},
		{"\"ab\"c\n", "[]", "unbalanced quotes in request"},
		{"*\r\n", "[]", "invalid multibulk length"},
		{"*x\r\n", "[]", "invalid multibulk length"},
		{"*+1\r\n", "[]", "invalid multibulk length"},
		{"*1 \r\n", "[]", "invalid multibulk length"},
		{"*1\rx", "[]", "invalid multibulk length"},
		{"*1025\r\n", "[]", "invalid multibulk length"},
		{"*2147483648\r\n", "[]", "invalid multibulk length"},
		{"*99999999999999999999\r\n", "[]", "invalid multibulk length"},
		{"*" + strings.Repeat("0", 30), "[]", "invalid multibulk length"},
		{"*1\r\n:1\r\n", "[]", "expected '$', got ':'"},
		{"*1\r\n$-1\r\n", "[]", "invalid bulk length"},
		{"*1\r\n$x\r\n", "[]", "invalid bulk length"},
		{"*1\r\n$1073741824\r\n", "[]", "invalid bulk length"},
		{"*1\r\n$65537\r\n", "[]", "invalid bulk length"},
		{"*1\r\n$65530\r\n", "[]", "too big request"},
		{"*2\r\n$40000\r\n" + long[:40000] + "\r\n$40000\r\n", "[]", "too big request"},
		{"*1\r\n$1\r\nab\r\n", "[]", "expected CRLF at the end of a bulk string"},
		{"*1\r\n$1\r\nax\n", "[]", "expected CRLF at the end of a bulk string"},
		{"*1\r\n$1\r\na\rx", "[]", "expected CRLF at the end of a bulk string"},
		{"*0000000001\r\n$0000000001\r\na\r\n", "[[a]]", ""},
		{"*00000000001\r\n", "[]", "invalid multibulk length"},
		{"*" + strings.Repeat("0", 23), "[]", ""},
		{"*" + strings.Repeat("0", 24), "[]", "invalid multibulk length"},
		{"*1\r\n$65523\r\n" + long[:65523] + "\r\n", "[]", "too big request"},
		{"*2\r\n$65516\r\n" + long[:65516] + "\r\n$0000", "[]", ""},
		{"*2\r\n$65516\r\n" + long[:65516] + "\r\n$00000", "[]", "too big request"},
		{`"ab\` + "\n", "[]", "unbalanced quotes in request"},
		{`"\n41" "\x4g" '\a'` + "\n", "[[\n41 x4g \\a]]", ""},
		{long, "[]", "too big inline request"},
		{long[:maxSize-1], "[]", ""},
		{strings.Repeat("a ", maxArgs+1) + "\n", "[]", "too big inline request"},
	} {
		name := tt.input[:min(len(tt.input), 40)]
		commands, problem := parseAll([]byte(tt.input), false)
		if got := fmt.Sprint(commands); got != tt.want || problem != tt.problem {
			t.Errorf("%q: %q, %q; want %q, %q", name, got, problem, tt.want, tt.problem)
		}
	}
}

// The largest commands are whole.
func TestParseLargest(t *testing.T) {
	bulk := strings.Repeat("x", maxSize)
	for name, input := range map[string]string{
		"bytes":           "*1\r\n$65522\r\n" + bulk[:65522] + "\r\n",
		"arguments":       "*1024\r\n" + strings.Repeat("$1\r\na\r\n", maxArgs),
		"words":           strings.Repeat("a ", maxArgs) + "\n",
		"bytes of a line": bulk[:maxSize-1] + "\n",
	} {
		if args, size, err := parse([]byte(input), nil, knownLimits); err != nil || size != len(input) || len(args) == 0 {
			t.Errorf("%s: %d bytes of %d, %d arguments, %v", name, size, len(input), len(args), err)
		}
	}
	for _, input := range []string{"*10\r\n" + strings.Repeat("$0\r\n\r\n", 10), "*1\r\n$4083\r\n" + bulk[:4083] + "\r\n"} {
		if _, size, err := parse([]byte(input), nil, unknownLimits); err != nil || size != len(input) {
			t.Errorf("of an unknown caller: %d bytes of %d, %v", size, len(input), err)
		}
	}
}

// Numbers are those of the range, in both forms of a reply.
func TestIntegers(t *testing.T) {
	for start := range int64(25) {
		for end := start; end < 130; end++ {
			var got reply
			var want strings.Builder
			for id := start; id < end; id++ {
				fmt.Fprintf(&want, ":%d\r\n", id)
			}
			if got.integers(leaf.Range{Start: start, End: end}); string(got.buf) != want.String() {
				t.Fatalf("%d to %d: %q", start, end, got.buf)
			}
		}
	}
}

// Unknown callers may send less.
func TestParseUnknownCaller(t *testing.T) {
	for _, input := range []string{"*11\r\n", "*1\r\n$4097\r\n", "*1\r\n$4084\r\n", strings.Repeat("x", 4096)} {
		if _, _, err := parse([]byte(input), nil, unknownLimits); err == nil {
			t.Errorf("%q is taken", input)
		}
	}
}

// FuzzParse checks that the pieces of the input do not matter, and that no input yields more than
// it holds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"*2\r\n$4\r\nINCR\r\n$5\r\norder\r\n*2\r\n$4\r\nINCR\r\n$5\r\norder\r\n", "PING\r\nINCR order\n", "*-1\r\n*0\r\n*1\r\n$0\r\n\r\n",
		"*1\r\n$1073741824\r\n", "*1\r\n$-5\r\nx", "*99999999999\r\n", "SET \"a\\x41\" 'b\\'' c\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "*3\r\n$3\r\nSET\r\n$1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		commands, problem := parseAll(input, false)
		slow, slowProblem := parseAll(bytes.Clone(input), true)
		if diff := cmp.Diff(commands, slow); diff != "" || problem != slowProblem {
			t.Errorf("at once: %q; byte by byte: %q; (-at once +byte by byte)\n%s", problem, slowProblem, diff)
		}
		size := 0
		for _, c := range commands {
			for _, a := range c {
				size += len(a)
			}
		}
		if size > len(input) {
			t.Errorf("%d bytes of arguments out of %d", size, len(input))
		}
	})
}
