package respapi

import (
	"cmp"
	"errors"
	"strings"

	"github.com/leaf-id/leaf/internal/server/access"
)

// A command is one that this server answers.
type command struct {
	name    string
	arity   int // arguments with the name; negative: at least so many
	key     int // index of the tag among the arguments; 0: no tag
	flags   string
	group   string
	summary string
	do      func(s *session, args [][]byte, frame []byte)
}

// flagOpen marks commands for callers without credentials.
const flagOpen = "no_auth"

// newTable lists the commands.
func newTable() []command {
	return []command{
		{"INCR", 2, 1, "write fast", "string", "Takes the next ID of a tag.", (*session).incr},
		{"INCRBY", 3, 1, "write fast", "string", "Takes n contiguous IDs of a tag; the last one is the answer.", (*session).incrBy},
		{"LEAF.NEXT", -3, 2, "write fast", "string", "Takes the next ID, or n IDs, of any scheme.", (*session).leafNext},
		{"SETNX", 3, 1, "write fast", "string", "Answers 0 for a tag that exists.", (*session).setNX},
		{"SET", -3, 1, "write fast", "string", "With NX answers null for a tag that exists.", (*session).set},
		{"GET", 2, 1, "readonly fast", "string", "Is refused: a counter has no one value.", (*session).get},
		{"PING", -1, 0, "fast", "connection", "Answers PONG, or its argument.", (*session).ping},
		{"ECHO", 2, 0, "fast", "connection", "Answers its argument.", (*session).echo},
		{"AUTH", -2, 0, "fast " + flagOpen, "connection", "Says who the caller is, by a token.", (*session).auth},
		{"HELLO", -1, 0, "fast " + flagOpen, "connection", "Chooses the version of the protocol.", (*session).hello},
		{"QUIT", -1, 0, "fast " + flagOpen, "connection", "Ends the connection.", (*session).quit},
		{"RESET", 1, 0, "fast " + flagOpen, "connection", "Makes the connection what it was at its beginning.", (*session).doReset},
		{"SELECT", 2, 0, "fast", "connection", "Answers OK for database 0; there is no other.", (*session).selectDB},
		{"CLIENT", -2, 0, "", "connection", "Answers what client libraries ask about their connection.", (*session).client},
		{"COMMAND", -1, 0, "", "server", "Lists the commands.", (*session).command},
		{"CONFIG", -2, 0, "readonly", "server", "GET answers what tools ask about the server.", (*session).config},
		{"INFO", -1, 0, "readonly", "server", "Tells of the server.", (*session).info},
	}
}

// refusals are the reasons why well-known commands do not exist here.
var refusals = map[string]string{
	"DECR":    goesUp,
	"DECRBY":  goesUp,
	"DEL":     keepsTags,
	"UNLINK":  keepsTags,
	"MULTI":   noTransactions,
	"EXEC":    noTransactions,
	"DISCARD": noTransactions,
	"WATCH":   noTransactions,
}

const (
	goesUp         = "a counter only goes up: a lower one would issue its IDs again"
	keepsTags      = "an administrator deletes tags, over the administrative interface"
	noTransactions = "there are no transactions: an ID once taken stays taken; INCRBY and LEAF.NEXT with COUNT take several at once"
)

// newIndex returns the commands by their names.
func newIndex(table []command) map[string]*command {
	index := make(map[string]*command, len(table))
	for i := range table {
		index[table[i].name] = &table[i]
	}
	return index
}

func (c *command) open() bool { return strings.Contains(c.flags, flagOpen) }

// takes reports whether the command may have n arguments, its name included.
func (c *command) takes(n int) bool { return n == c.arity || c.arity < 0 && n >= -c.arity }

// lookup returns the command of a name in any case, or nil.
func (a *API) lookup(name []byte) *command {
	var upper [16]byte
	if len(name) > len(upper) {
		return nil
	}
	for i, c := range name {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		upper[i] = c
	}
	return a.index[string(upper[:len(name)])]
}

// dispatch executes one command. frame is its encoded form.
func (s *session) dispatch(args [][]byte, frame []byte) {
	c := s.lookup(args[0])
	switch {
	case isHTTP(args[0]): // a browser was led here: what follows may look like commands
		s.end()
	case (c == nil || !c.open()) && !s.known():
		s.run = run{} // the permission has ended
		s.failed(access.ErrUnauthenticated)
	case c == nil:
		s.fail("ERR unknown command " + quoted(args[0]) + "; " + cmp.Or(refusals[strings.ToUpper(string(args[0]))],
			"this server gives IDs: INCR TAG, INCRBY TAG N, LEAF.NEXT SCHEME KEY"))
	case !c.takes(len(args)):
		s.fail("ERR wrong number of arguments for '" + strings.ToLower(c.name) + "' command")
	default:
		c.do(s, args, frame)
	}
}

// known reports whether the caller is known, still: the tokens may have changed.
func (s *session) known() bool {
	return s.caller != nil && (s.Access.Open() || !errors.Is(s.caller.May(access.Take), access.ErrUnauthenticated))
}

// isHTTP recognises the beginning of an HTTP request with a body, or its second line.
func isHTTP(name []byte) bool { return is(name, "POST") || is(name, "HOST:") }

// is compares without regard to case.
func is(arg []byte, word string) bool {
	return len(arg) == len(word) && strings.EqualFold(string(arg), word)
}

// quoted is an argument in an error: not more than a line of it, and printable.
func quoted(arg []byte) string {
	const most = 64
	text := strings.ToValidUTF8(string(arg[:min(len(arg), most)]), "?")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\'' {
			return '?'
		}
		return r
	}, text)
	if len(arg) > most {
		text += "…"
	}
	return "'" + text + "'"
}
