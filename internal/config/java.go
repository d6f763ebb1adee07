package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/magiconair/properties"

	"github.com/leaf-id/leaf"
)

// JavaURLs turn the addresses in a leaf.properties into URLs of stores and registries.
// Package drivers has the functions.
type JavaURLs struct {
	Store   func(jdbcURL, user, password string) (string, error)
	Workers func(zooKeeper, name string, port int) (string, error)
}

// The keys of leaf.properties. A second spelling is that of the Spring Boot starter.
var (
	javaSegmentEnable   = []string{"leaf.segment.enable"}
	javaURL             = []string{"leaf.jdbc.url", "leaf.segment.url"}
	javaUser            = []string{"leaf.jdbc.username", "leaf.segment.username"}
	javaPassword        = []string{"leaf.jdbc.password", "leaf.segment.password"}
	javaSnowflakeEnable = []string{"leaf.snowflake.enable"}
	javaZooKeeper       = []string{"leaf.snowflake.zk.address", "leaf.snowflake.address"}
	javaSnowflakePort   = []string{"leaf.snowflake.port"}
	javaName            = []string{"leaf.name"}

	javaKeys = slices.Concat(javaSegmentEnable, javaURL, javaUser, javaPassword,
		javaSnowflakeEnable, javaZooKeeper, javaSnowflakePort, javaName)
)

// javaNullName is what Java Leaf uses in ZooKeeper without a leaf.name.
const javaNullName = "null"

// A javaFile is a leaf.properties under conversion.
type javaFile struct {
	*loader
	name    string
	props   *properties.Properties
	urls    JavaURLs
	missing string // the missing part of ZooKeeper's address
}

// properties applies a leaf.properties in the form of java.util.Properties: ISO-8859-1, and ${…}
// has no meaning. Java Leaf listens on all interfaces, speaks HTTP alone, and listens only after it
// has its worker ID, for which it may have to wait.
func (l *loader) properties(name string, data []byte, urls JavaURLs) {
	reader := properties.Loader{Encoding: properties.ISO_8859_1, DisableExpansion: true}
	props, err := reader.LoadBytes(data)
	if err != nil {
		l.problem(name, "", err.Error())
		return
	}
	j := &javaFile{loader: l, name: name, props: props, urls: urls}
	l.java = j
	segment, snowflake := j.enabled(javaSegmentEnable[0]), j.enabled(javaSnowflakeEnable[0])
	said := map[string]string{
		"listen": ":8080", "resp": Off, "start_wait": "15s", "public_read": "true", "segment.policy": PolicyLeaf,
		"segment.enable": strconv.FormatBool(segment), "snowflake.enable": strconv.FormatBool(snowflake),
	}
	if segment {
		said["store"] = j.store()
	}
	if snowflake {
		said["workers"] = j.workers()
	}
	for path, text := range said {
		l.setKey(path, text, name)
	}
	j.unknown()
}

func (j *javaFile) notice(format string, args ...any) {
	j.notices = append(j.notices, j.name+": "+fmt.Sprintf(format, args...))
}

// get returns the first of the spellings with a value, and that value.
func (j *javaFile) get(spellings []string) (name, value string) {
	for _, s := range spellings {
		v, _ := j.props.Get(s)
		switch {
		case v == "":
		case name == "":
			name, value = s, v
		case v != value:
			j.notice("%s is ignored, because %s is set too", s, name)
		}
	}
	return cmp.Or(name, spellings[0]), value
}

// enabled reads as Java does: an absent key means true, and so does "true" in any case;
// all else is false.
func (j *javaFile) enabled(name string) bool {
	v, ok := j.props.Get(name)
	if !ok || strings.EqualFold(v, "true") {
		return true
	}
	if !strings.EqualFold(v, "false") {
		j.notice("%s=%s is neither true nor false; Java Leaf takes it for false, and so does this server", name, v)
	}
	j.off = append(j.off, name+" is not true")
	return false
}

// store returns the URL of the store, "" without an address.
func (j *javaFile) store() string {
	key, address := j.get(javaURL)
	_, user := j.get(javaUser)
	_, password := j.get(javaPassword)
	if address == "" {
		return ""
	}
	url, err := j.urls.Store(strings.TrimSpace(address), user, password)
	return j.valid(key, url, err)
}

// workers returns the URL of the worker registry, "" where something is missing.
func (j *javaFile) workers() string {
	key, address := j.get(javaZooKeeper)
	portKey, portText := j.get(javaSnowflakePort)
	if address == "" || portText == "" {
		j.missing = portKey
		if address == "" {
			j.missing = key
		}
		return ""
	}
	port, err := strconv.ParseUint(strings.TrimSpace(portText), 10, 16)
	if err != nil || port == 0 {
		j.problem(j.name, portKey, fmt.Sprintf("%q is not a number from 1 to 65535", portText))
		return ""
	}
	_, name := j.get(javaName)
	if name == "" {
		name = javaNullName
		j.notice("%s is missing: Java Leaf is called %s in ZooKeeper then, and so is this server", javaName[0], name)
	}
	url, err := j.urls.Workers(address, name, int(port))
	return j.valid(key, url, err)
}

// valid returns url, and records a fault of its address.
func (j *javaFile) valid(key, url string, err error) string {
	if err != nil {
		j.problem(j.name, key, strings.TrimPrefix(err.Error(), leaf.ErrInvalid.Error()+": "))
	}
	return url
}

func (j *javaFile) unknown() {
	for _, name := range j.props.Keys() {
		if strings.HasPrefix(name, "leaf.") && !slices.Contains(javaKeys, name) {
			j.notice("%s is not a key of Java Leaf and is ignored%s", name, didYouMean(name, javaKeys))
		}
	}
}

// requireAddresses turns off the schemes of a leaf.properties without an address: the embedded
// database is for servers without earlier counters.
func (l *loader) requireAddresses() {
	if l.java == nil || len(l.problems) > 0 {
		return
	}
	noStore, noWorkers := l.cfg.Store == "" && l.cfg.StoreFile == "", l.cfg.Workers == "" && l.cfg.WorkersFile == ""
	if l.cfg.Segment.Enable && noStore {
		l.cfg.Segment.Enable = false
		l.withoutAddress("segment", javaSegmentEnable[0], javaURL[0])
	}
	if l.cfg.Snowflake.Enable && noWorkers {
		l.cfg.Snowflake.Enable = false
		l.cfg.SnowflakeOff = l.withoutAddress("snowflake", javaSnowflakeEnable[0], cmp.Or(l.java.missing, javaZooKeeper[0]))
	}
	if l.cfg.UID.Enable == EnableAuto && noStore && noWorkers {
		l.cfg.UID.Enable = EnableFalse
	}
}

// withoutAddress notes, and returns, why a scheme is off that the key called enable has turned on.
func (l *loader) withoutAddress(scheme, enable, missing string) string {
	said := enable + " is absent, which means true"
	if v, ok := l.java.props.Get(enable); ok {
		said = enable + "=" + v
	}
	why := fmt.Sprintf("%s is on (%s) but %s is missing", scheme, said, missing)
	l.off = append(l.off, why)
	l.java.notice("%s: the scheme does not start", why)
	return why
}
