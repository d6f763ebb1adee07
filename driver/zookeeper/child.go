package zookeeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// suffixDigits is how many digits ZooKeeper numbers children with.
const suffixDigits = 10

// javaID returns the worker ID that Java Leaf reads in the name of a child: the
// number after the first hyphen.
func javaID(name string) (int64, bool) {
	parts := strings.Split(name, "-")
	if len(parts) < 2 {
		return 0, false
	}
	id, err := strconv.ParseInt(parts[1], 10, 32)
	return id, err == nil
}

// ownID returns the worker ID in the name of a child of ours; no other name may be one.
func ownID(name, address string) (int64, bool) {
	digits, ok := strings.CutPrefix(name, address+"-")
	if !ok || len(digits) != suffixDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil
}

// javaData is the content of a node in Java Leaf's tree, byte for byte: a Java server refuses any
// other field.
func javaData(address string, now int64) ([]byte, error) {
	ip, port, err := net.SplitHostPort(address)
	return fmt.Appendf(nil, `{"ip":"%s","port":"%s","timestamp":%d}`, ip, port, now), err
}

// javaTime returns the last uploaded time in Unix milliseconds, 0 if it is unreadable.
func javaTime(data []byte) int64 {
	var t struct {
		Timestamp int64 `json:"timestamp"`
	}
	if json.Unmarshal(data, &t) != nil {
		return 0
	}
	return t.Timestamp
}

// A note records this program's last write to one of its children. It is outside Java Leaf's tree.
// One transaction writes it with the child.
type note struct {
	Format  int    `json:"v"`
	Writer  string `json:"writer"` // tells this registry from all others
	Created int64  `json:"created"`
	Version int32  `json:"version"`
}

const noteFormat = 1

// A child is a node in Java Leaf's tree as it was looked at, and who wrote it last.
type child struct {
	name    string
	id      int64
	created int64 // the zxid, which no later node of the same name shares
	version int32
	time    int64 // uploaded, Unix milliseconds
	noted   note

	changed <-chan zk.Event // delivers when it is written again; nil: it is not watched
}

// same reports whether c and d have no write between them.
func (c child) same(d child) bool { return c.created == d.created && c.version == d.version }

// ours reports whether this program wrote last, maybe another process of it.
func (c child) ours() bool {
	return c.noted.Format == noteFormat && c.noted.Created == c.created && c.noted.Version == c.version
}

// errGone is the error of a deleted child.
var errGone = errors.New("it was deleted")

// inspect looks at a child and at the note about it, both at one time.
func (l *Leaf) inspect(conn *zk.Conn, name string, id int64) (child, error) {
	for {
		data, stat, err := conn.Get(l.child(name))
		if errors.Is(err, zk.ErrNoNode) {
			return child{}, errGone
		}
		if err != nil {
			return child{}, err
		}
		c := child{name: name, id: id, created: stat.Czxid, version: stat.Version, time: javaTime(data)}
		text, _, err := conn.Get(l.note(name))
		switch {
		case errors.Is(err, zk.ErrNoNode):
		case err != nil:
			return child{}, err
		default:
			_ = json.Unmarshal(text, &c.noted) // what cannot be read proves nothing
		}
		exists, again, err := conn.Exists(l.child(name))
		if err != nil {
			return child{}, err
		}
		if exists && again.Czxid == stat.Czxid && again.Version == stat.Version {
			return c, nil
		}
	}
}

// writeNote notes that the last write to c was this registry's.
func (l *Leaf) writeNote(conn *zk.Conn, c child) error {
	text, err := l.noteOf(c.created, c.version)
	if err != nil {
		return err
	}
	if err := l.nodes.makePath(conn, l.notes()); err != nil {
		return err
	}
	err = create(conn, l.note(c.name), text)
	if errors.Is(err, zk.ErrNodeExists) {
		_, err = conn.Set(l.note(c.name), text, -1)
	}
	return err
}

func (l *Leaf) noteOf(created int64, version int32) ([]byte, error) {
	return json.Marshal(note{noteFormat, l.writer, created, version})
}

// write uploads a time to c, if it had no write meanwhile, together with the note of that.
func (l *Leaf) write(conn *zk.Conn, c child, now int64) error {
	data, err := javaData(l.address, now)
	if err != nil {
		return err
	}
	text, err := l.noteOf(c.created, c.version+1)
	if err != nil {
		return err
	}
	_, err = conn.Multi(
		&zk.SetDataRequest{Path: l.child(c.name), Data: data, Version: c.version},
		&zk.SetDataRequest{Path: l.note(c.name), Data: text, Version: -1})
	return err
}

func (l *Leaf) notes() string            { return l.nodes.root + "/uploads" }
func (l *Leaf) note(name string) string  { return l.notes() + "/" + name }
func (l *Leaf) child(name string) string { return l.nodes.forever() + "/" + name }
