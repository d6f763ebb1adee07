package respapi

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path"
	"strings"
	"time"
)

// command serves COMMAND and its subcommands.
func (s *session) command(args [][]byte, _ []byte) {
	sub := ""
	if len(args) > 1 {
		sub = strings.ToUpper(string(args[1]))
	}
	switch sub {
	case "":
		s.commandList()
	case "COUNT":
		s.integer(int64(len(s.table)))
	case "LIST":
		s.array(len(s.table))
		for _, c := range s.table {
			s.bulk(strings.ToLower(c.name))
		}
	case "DOCS":
		s.commandDocs(args[2:])
	case "INFO":
		s.commandInfos(args[2:])
	default:
		s.fail("ERR unknown subcommand " + quoted(args[1]) + ". There are COUNT, LIST, DOCS, INFO.")
	}
}

// commandList describes all commands. The text is made once for each version of the protocol.
func (s *session) commandList() {
	list := &s.lists[s.protocol()-2]
	if text := list.Load(); text != nil {
		s.buf = append(s.buf, *text...)
		return
	}
	from := len(s.buf)
	s.array(len(s.table))
	for i := range s.table {
		s.commandInfo(&s.table[i])
	}
	list.Store(new(bytes.Clone(s.buf[from:])))
}

// commandInfos describes some commands; an unknown one is null.
func (s *session) commandInfos(names [][]byte) {
	if len(names) == 0 {
		s.command(make([][]byte, 1), nil)
		return
	}
	s.array(len(names))
	for _, name := range names {
		if c := s.lookup(name); c != nil {
			s.commandInfo(c)
		} else {
			s.nullArray()
		}
	}
}

// commandInfo describes a command in the ten fields that Redis has.
func (s *session) commandInfo(c *command) {
	s.array(10)
	s.bulk(strings.ToLower(c.name))
	s.integer(int64(c.arity))
	flags := strings.Fields(c.flags)
	s.members(len(flags))
	for _, f := range flags {
		s.simple(f)
	}
	step := min(c.key, 1)
	for _, n := range []int{c.key, c.key, step} {
		s.integer(int64(n))
	}
	s.members(1)
	s.simple("@" + c.group)
	for range 3 { // tips, key specifications, subcommands
		s.array(0)
	}
}

// commandDocs documents commands, without the unknown ones.
func (s *session) commandDocs(names [][]byte) {
	var list []*command
	for i := range s.table {
		list = append(list, &s.table[i])
	}
	if len(names) > 0 {
		list = list[:0]
		for _, name := range names {
			if c := s.lookup(name); c != nil {
				list = append(list, c)
			}
		}
	}
	s.mapping(len(list))
	for _, c := range list {
		s.bulk(strings.ToLower(c.name))
		s.mapping(3)
		for _, field := range [][2]string{{"summary", c.summary}, {"since", "1.0.0"}, {"group", c.group}} {
			s.bulk(field[0])
			s.bulk(field[1])
		}
	}
}

// config serves CONFIG GET, which tools ask before they start. Nothing can be set.
func (s *session) config(args [][]byte, _ []byte) {
	if !is(args[1], "GET") || len(args) < 3 {
		s.fail("ERR this server answers CONFIG GET PATTERN only; it is configured by its own file")
		return
	}
	var found [][2]string
	for _, c := range [][2]string{{"appendonly", "no"}, {"databases", "1"}, {"proto-max-bulk-len", fmt.Sprint(maxSize)}, {"save", ""}, {"timeout", "0"}} {
		for _, pattern := range args[2:] {
			if ok, _ := path.Match(strings.ToLower(string(pattern)), c[0]); ok { // a bad pattern matches nothing
				found = append(found, c)
				break
			}
		}
	}
	s.mapping(len(found))
	for _, c := range found {
		s.bulk(c[0])
		s.bulk(c[1])
	}
}

// info serves INFO [section...], in Redis's form.
func (s *session) info(args [][]byte, _ []byte) {
	var b strings.Builder
	for _, section := range s.sections() {
		if !wanted(args[1:], section[0]) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + section[0] + "\r\n" + section[1])
	}
	s.text(b.String())
}

func wanted(sections [][]byte, name string) bool {
	for _, s := range sections {
		if is(s, name) || is(s, "all") || is(s, "default") || is(s, "everything") {
			return true
		}
	}
	return len(sections) == 0
}

func (s *session) sections() [][2]string {
	up := time.Since(s.Started)
	_, port, _ := net.SplitHostPort(s.conn.LocalAddr().String())
	return [][2]string{
		{"Server", fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nleaf_version:%s\r\nprocess_id:%d\r\ntcp_port:%s\r\nuptime_in_seconds:%d\r\nuptime_in_days:%d\r\n",
			redisVersion, s.Version, os.Getpid(), port, int64(up.Seconds()), int64(up.Hours()/24))},
		{"Clients", fmt.Sprintf("connected_clients:%d\r\n", s.open.Load())},
		{"Persistence", "loading:0\r\n"},
		{"Stats", fmt.Sprintf("total_connections_received:%d\r\ntotal_commands_processed:%d\r\n", s.lastID.Load(), s.done.Load()+s.commands)},
		{"Replication", "role:master\r\nconnected_slaves:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
	}
}
