package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/magiconair/properties"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
)

// What nothing in the settings of Java Leaf says: where it listens, and that it does so
// only when it has its worker ID, for which it may have to wait.
const (
	javaListen    = ":8080"
	javaStartWait = 15 * time.Second
)

// The keys of leaf.properties. A second spelling is that of the Spring Boot
// starter.
var (
	javaSegmentEnable   = []string{"leaf.segment.enable"}
	javaURL             = []string{"leaf.jdbc.url", "leaf.segment.url"}
	javaUser            = []string{"leaf.jdbc.username", "leaf.segment.username"}
	javaPassword        = []string{"leaf.jdbc.password", "leaf.segment.password"}
	javaSnowflakeEnable = []string{"leaf.snowflake.enable"}
	javaZooKeeper       = []string{"leaf.snowflake.zk.address", "leaf.snowflake.address"}
	javaSnowflakePort   = []string{"leaf.snowflake.port"}
	javaName            = []string{"leaf.name"}
)

func javaKeys() []string {
	return slices.Concat(javaSegmentEnable, javaURL, javaUser, javaPassword,
		javaSnowflakeEnable, javaZooKeeper, javaSnowflakePort, javaName)
}

// javaSettings is what a leaf.properties says.
type javaSettings struct {
	segment   bool   // the scheme is on
	store     string // its store's URL, with user and password; empty where none is given
	snowflake bool   // the scheme is on
	workers   string // its worker URL; empty where something is missing
	missing   string // what is missing of workers
	said      string // how snowflake comes to be on
	notices   []string
	problems  Problems
}

// readJava reads a leaf.properties as java.util.Properties does: ISO-8859-1, and
// ${…} has no meaning.
func readJava(file string, data []byte) javaSettings {
	loader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	props, err := loader.LoadBytes(data)
	if err != nil {
		return javaSettings{problems: Problems{{Where: file, Text: err.Error()}}}
	}
	r := javaReader{file: file, props: props}
	r.out.segment = r.enabled(javaSegmentEnable[0])
	r.store()
	r.snowflake()
	r.unknown()
	return r.out
}

type javaReader struct {
	file  string
	props *properties.Properties
	out   javaSettings
}

func (r *javaReader) notice(format string, args ...any) {
	r.out.notices = append(r.out.notices, r.file+": "+fmt.Sprintf(format, args...))
}

// get returns the first of the spellings that has a value, and that value.
func (r *javaReader) get(spellings []string) (name, value string) {
	for _, s := range spellings {
		v, _ := r.props.Get(s)
		switch {
		case v == "":
		case name == "":
			name, value = s, v
		case v != value:
			r.notice("%s is ignored, because %s is set too", s, name)
		}
	}
	return cmp.Or(name, spellings[0]), value
}

// enabled is Java's reading: an absent key means true, and so does "true" in any
// case; all else is false.
func (r *javaReader) enabled(name string) bool {
	v, ok := r.props.Get(name)
	if !ok {
		return true
	}
	if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
		r.notice("%s=%s is neither true nor false; Java Leaf takes it for false, and so does this server", name, v)
	}
	return strings.EqualFold(v, "true")
}

func (r *javaReader) store() {
	name, url := r.get(javaURL)
	_, user := r.get(javaUser)
	_, password := r.get(javaPassword)
	if !r.out.segment || url == "" {
		return
	}
	store, err := drivers.FromJDBC(strings.TrimSpace(url), user, password)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), leaf.ErrInvalid.Error()+": ")
		r.out.problems = append(r.out.problems, Problem{r.file, name, text})
		return
	}
	r.out.store = store
}

// javaNullName is what Java Leaf uses in ZooKeeper without a leaf.name.
const javaNullName = "null"

func (r *javaReader) snowflake() {
	enable := javaSnowflakeEnable[0]
	if r.out.snowflake = r.enabled(enable); !r.out.snowflake {
		return
	}
	r.out.said = r.said(enable)
	addressKey, address := r.get(javaZooKeeper)
	portKey, portText := r.get(javaSnowflakePort)
	switch {
	case address == "":
		r.out.missing = addressKey
		return
	case portText == "":
		r.out.missing = portKey
		return
	}
	port, err := strconv.Atoi(strings.TrimSpace(portText))
	if err != nil || port < 1 || port > 65535 {
		r.out.problems = append(r.out.problems, Problem{r.file, portKey, fmt.Sprintf("%q is no number from 1 to 65535", portText)})
		return
	}
	_, name := r.get(javaName)
	if name == "" {
		name = javaNullName
		r.notice("%s is missing: Java Leaf is called %s in ZooKeeper then, and so is this server", javaName[0], name)
	}
	workers, err := drivers.FromCurator(address, name, port)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), leaf.ErrInvalid.Error()+": ")
		r.out.problems = append(r.out.problems, Problem{r.file, addressKey, text})
		return
	}
	r.out.workers = workers
}

// said is how name comes to be true.
func (r *javaReader) said(name string) string {
	if v, ok := r.props.Get(name); ok {
		return name + "=" + v
	}
	return name + " is absent, which means true"
}

func (r *javaReader) unknown() {
	known := javaKeys()
	for _, name := range r.props.Keys() {
		if !strings.HasPrefix(name, "leaf.") || slices.Contains(known, name) {
			continue
		}
		if near := nearest(name, known); near != "" {
			r.notice("%s is no key of Java Leaf and is ignored; did you mean %s?", name, near)
		} else {
			r.notice("%s is no key of Java Leaf and is ignored", name)
		}
	}
}

// properties applies a leaf.properties.
func (l *loader) properties(file string, data []byte) {
	java := readJava(file, data)
	l.javaFile = file
	l.problems = append(l.problems, java.problems...)
	l.notices = append(l.notices, java.notices...)
	l.java = java
	l.cfg.Listen, l.cfg.StartWait = javaListen, javaStartWait
	l.cfg.Store, l.cfg.Workers = java.store, java.workers
	l.cfg.Segment.Enable, l.cfg.Snowflake.Enable = java.segment, java.snowflake
	if !java.segment {
		l.off = append(l.off, javaSegmentEnable[0]+" is not true")
	}
	if !java.snowflake {
		l.off = append(l.off, javaSnowflakeEnable[0]+" is not true")
	}
	l.cfg.Segment.Policy = PolicyLeaf
	for _, path := range []string{"listen", "start_wait", "store", "workers", "segment.enable", "segment.policy", "snowflake.enable"} {
		l.origins[path] = file
	}
}

// requireAddresses turns schemes of a leaf.properties off that nobody gave an address:
// the embedded database is for those who have no counters yet.
func (l *loader) requireAddresses() {
	if l.javaFile == "" || len(l.problems) > 0 {
		return
	}
	if l.cfg.Segment.Enable && l.cfg.Store == "" && l.cfg.StoreFile == "" {
		l.cfg.Segment.Enable = false
		l.withoutAddress(fmt.Sprintf("segment is on (an absent %s means true) but %s is missing", javaSegmentEnable[0], javaURL[0]))
	}
	if l.cfg.Snowflake.Enable && l.cfg.Workers == "" && l.cfg.WorkersFile == "" {
		l.cfg.Snowflake.Enable = false
		said, missing := cmp.Or(l.java.said, "snowflake.enable"), cmp.Or(l.java.missing, javaZooKeeper[0])
		l.cfg.SnowflakeOff = fmt.Sprintf("snowflake is on (%s) but %s is missing", said, missing)
		l.withoutAddress(l.cfg.SnowflakeOff)
	}
	if l.cfg.UID.Enable == EnableAuto && l.cfg.Store == "" && l.cfg.StoreFile == "" && l.cfg.Workers == "" && l.cfg.WorkersFile == "" {
		l.cfg.UID.Enable = EnableFalse
	}
}

func (l *loader) withoutAddress(why string) {
	l.off = append(l.off, why)
	l.notices = append(l.notices, l.javaFile+": "+why+": the scheme does not start")
}
