package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/magiconair/properties"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
)

// javaListen is where Java Leaf listens: nothing in its settings says so.
const javaListen = ":8080"

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

// javaSettings is what a leaf.properties says to this version.
type javaSettings struct {
	segment  bool   // the scheme is on
	store    string // its store's URL, with user and password; empty where none is given
	notices  []string
	problems Problems
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

func (r *javaReader) snowflake() {
	enable := javaSnowflakeEnable[0]
	_, address := r.get(javaZooKeeper)
	switch {
	case !r.enabled(enable):
	case address == "":
		r.notice("snowflake is on (%s) but %s is missing: the scheme does not start", r.said(enable), javaZooKeeper[0])
	default:
		r.notice("snowflake is on (%s) but this version serves segment only: the scheme does not start", r.said(enable))
	}
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
	l.java = file
	l.problems = append(l.problems, java.problems...)
	l.notices = append(l.notices, java.notices...)
	l.cfg.Listen = javaListen
	l.cfg.Store = java.store
	l.cfg.Segment.Enable = java.segment
	if !java.segment {
		l.off = javaSegmentEnable[0] + " is not true, and segment is the only scheme of this version"
	}
	l.cfg.Segment.Policy = PolicyLeaf
	for _, path := range []string{"listen", "store", "segment.enable", "segment.policy"} {
		l.origins[path] = file
	}
}

// requireAddress turns a scheme of a leaf.properties off that nobody gave an
// address: the embedded database is for those who have no counters yet.
func (l *loader) requireAddress() {
	if l.java == "" || !l.cfg.Segment.Enable || l.cfg.Store != "" || l.cfg.StoreFile != "" || len(l.problems) > 0 {
		return
	}
	l.cfg.Segment.Enable = false
	l.off = fmt.Sprintf("segment is on (an absent %s means true) but %s is missing", javaSegmentEnable[0], javaURL[0])
}
