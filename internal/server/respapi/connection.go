package respapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// redisVersion is the Redis version of this protocol. Client libraries choose their commands by it.
const redisVersion = "7.4.0"

func (s *session) ping(args [][]byte, _ []byte) {
	switch len(args) {
	case 1:
		s.simple("PONG")
	case 2:
		s.bulk(string(args[1]))
	default:
		s.fail("ERR wrong number of arguments for 'ping' command")
	}
}

func (s *session) echo(args [][]byte, _ []byte) { s.bulk(string(args[1])) }

func (s *session) quit([][]byte, []byte) {
	s.ok()
	s.end()
}

func (s *session) doReset([][]byte, []byte) {
	s.reset()
	s.simple("RESET")
}

func (s *session) selectDB(args [][]byte, _ []byte) {
	if string(args[1]) != "0" {
		s.fail("ERR DB index is out of range: there is one database, 0")
		return
	}
	s.ok()
}

// auth serves AUTH token and AUTH user token; the user has no meaning.
func (s *session) auth(args [][]byte, _ []byte) {
	switch {
	case len(args) > 3:
		s.fail("ERR syntax error")
	case len(args) == 2 && s.Access.Open():
		s.fail("ERR Client sent AUTH, but no password is set. Did you mean AUTH <username> <password>?")
	default:
		s.loginLater(string(args[len(args)-1]), s.ok)
	}
}

// loginLater has done answer where the token is valid. A wrong one is logged, which may wait.
func (s *session) loginLater(token string, done func()) {
	s.later(func(context.Context) {
		if s.login(token) {
			done()
		}
	})
}

// login makes the connection that of a token's owner, or tells why not.
func (s *session) login(token string) bool {
	credential := s.credential
	credential.Token = token
	caller, err := s.Access.Caller(credential)
	if err != nil {
		s.denied(err)
		return false
	}
	s.caller, s.credential = caller, credential
	return true
}

// hello serves HELLO [version [AUTH user token] [SETNAME name]]. It changes nothing, or all.
func (s *session) hello(args [][]byte, _ []byte) {
	resp3 := s.resp3
	if len(args) > 1 {
		version, err := strconv.Atoi(string(args[1]))
		if err != nil {
			s.fail("ERR Protocol version is not an integer or out of range")
			return
		}
		if version != 2 && version != 3 {
			s.fail("NOPROTO unsupported protocol version")
			return
		}
		resp3 = version == 3
	}
	options, ok := s.helloOptions(args[min(len(args), 2):])
	if !ok {
		return
	}
	done := func() { s.endHello(resp3, options.name) }
	if options.token != nil {
		s.loginLater(*options.token, done)
		return
	}
	done()
}

// endHello answers HELLO.
func (s *session) endHello(resp3 bool, name string) {
	if s.caller == nil {
		s.fail("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> " +
			"option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	s.resp3, s.name = resp3, name
	s.replyHello()
}

// helloOptions are what may follow the version.
type helloOptions struct {
	token *string // nil: no token
	name  string
}

// helloOptions parses the arguments after the version, or returns their fault.
func (s *session) helloOptions(args [][]byte) (o helloOptions, ok bool) {
	o.name = s.name
	for len(args) > 0 {
		switch {
		case is(args[0], "AUTH") && len(args) > 2:
			o.token = new(string(args[2]))
			args = args[3:]
		case is(args[0], "SETNAME") && len(args) > 1:
			if !s.checkName(args[1]) {
				return o, false
			}
			o.name = string(args[1])
			args = args[2:]
		default:
			s.fail("ERR Syntax error in HELLO option " + quoted(args[0]))
			return o, false
		}
	}
	return o, true
}

func (s *session) replyHello() {
	s.mapping(7)
	s.bulk("server")
	s.bulk("redis")
	s.bulk("version")
	s.bulk(redisVersion)
	s.bulk("proto")
	s.integer(s.protocol())
	s.bulk("id")
	s.integer(s.id)
	s.bulk("mode")
	s.bulk("standalone")
	s.bulk("role")
	s.bulk("master")
	s.bulk("modules")
	s.array(0)
}

func (s *session) protocol() int64 {
	if s.resp3 {
		return 3
	}
	return 2
}

// checkName returns the fault of a client's name or version.
func (s *session) checkName(name []byte) bool {
	const most = 256
	for _, c := range name {
		if c < '!' || c > '~' {
			s.fail("ERR Client names cannot contain spaces, newlines or special characters.")
			return false
		}
	}
	if len(name) > most {
		s.fail(fmt.Sprintf("ERR Client names cannot be longer than %d characters.", most))
		return false
	}
	return true
}

// client serves what libraries send when they connect.
func (s *session) client(args [][]byte, _ []byte) {
	switch sub := strings.ToUpper(string(args[1])); {
	case sub == "ID" && len(args) == 2:
		s.integer(s.id)
	case sub == "GETNAME" && len(args) == 2:
		s.clientName()
	case sub == "SETNAME" && len(args) == 3:
		if s.checkName(args[2]) {
			s.name = string(args[2])
			s.ok()
		}
	case sub == "SETINFO" && len(args) == 4:
		s.setInfo(args[2], args[3])
	case sub == "INFO" && len(args) == 2, sub == "LIST" && len(args) == 2:
		s.text(s.describe())
	case (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(args) == 3, sub == "REPLY" && len(args) == 3 && is(args[2], "ON"):
		s.ok()
	default:
		s.fail("ERR unknown subcommand or wrong number of arguments for " + quoted(args[1]) + ". There are ID, GETNAME, SETNAME, SETINFO, INFO, LIST.")
	}
}

func (s *session) clientName() {
	if s.name == "" {
		s.null()
		return
	}
	s.bulk(s.name)
}

func (s *session) setInfo(key, value []byte) {
	at := 0
	switch {
	case is(key, "LIB-NAME"):
	case is(key, "LIB-VER"):
		at = 1
	default:
		s.fail("ERR Unrecognized option " + quoted(key))
		return
	}
	if s.checkName(value) {
		s.lib[at] = string(value)
		s.ok()
	}
}

// describe is a connection in a line, as Redis describes its own.
func (s *session) describe() string {
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s db=0 resp=%d lib-name=%s lib-ver=%s\n",
		s.id, s.conn.RemoteAddr(), s.conn.LocalAddr(), s.name, s.protocol(), s.lib[0], s.lib[1])
}
