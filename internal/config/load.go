package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Source says where [Load] finds the settings. Its zero value means the defaults.
type Source struct {
	// File is the path of the configuration file. Empty: the value of LEAF_CONFIG, or no file. A
	// name that ends in .properties means Java Leaf's format, any other YAML.
	File string

	// Environ holds the environment variables, as NAME=VALUE; an empty one counts as unset. The
	// notices name those that only look like settings.
	Environ []string

	// Flags holds the values given on the command line, by the path of their key.
	Flags map[string]string

	// Java turns the addresses in a leaf.properties into URLs; required for such a file.
	Java JavaURLs
}

// Path returns the path of the file, or "".
func (src Source) Path() string {
	if src.File != "" {
		return src.File
	}
	path := ""
	for _, variable := range src.Environ {
		if value, ok := strings.CutPrefix(variable, "LEAF_CONFIG="); ok {
			path = value
		}
	}
	return path
}

// Load combines the defaults, the file, the environment and the flags, in this order. Its error, of
// type [Problems] unless a file is unreadable, lists all faults. The notices, also returned with an
// error, are for the log: settings of a leaf.properties without an effect, and layouts that end
// soon.
func Load(src Source) (Config, []string, error) {
	cfg := Default()
	l := newLoader(&cfg)
	vars := map[string]string{}
	for _, variable := range src.Environ {
		name, value, _ := strings.Cut(variable, "=")
		vars[name] = value
	}
	if err := l.file(src.Path(), src.Java); err != nil {
		return Config{}, nil, err
	}
	l.environment(vars)
	l.source = "flags"
	for _, path := range slices.Sorted(maps.Keys(src.Flags)) {
		l.setKey(path, src.Flags[path], flag(path))
	}
	l.requireAddresses()
	l.readURL("store")
	l.readURL("workers")
	l.readMaskKeys(vars)
	if l.check(); len(l.problems) > 0 {
		return cfg, l.notices, l.problems
	}
	for _, layout := range cfg.served() {
		if notice := ending(layout, time.Now()); notice != "" {
			l.notices = append(l.notices, notice)
		}
	}
	return cfg, l.notices, nil
}

// A loader puts settings into cfg.
type loader struct {
	cfg      *Config
	settings []setting         // of cfg
	source   string            // the present source: "file", "environment" or "flags"
	sources  map[string]string // by path of a URL or its file: the source that set it
	origins  map[string]string // by path: the place of the value
	java     *javaFile         // nil: no leaf.properties was read
	off      []string          // why schemes of java are off
	notices  []string
	problems Problems
}

func newLoader(cfg *Config) *loader {
	return &loader{cfg: cfg, settings: settings(cfg), source: "file", sources: map[string]string{}, origins: map[string]string{}}
}

func (l *loader) problem(where, path, text string) {
	l.problems = append(l.problems, Problem{where, path, text})
}

func (l *loader) file(name string, java JavaURLs) error {
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	switch {
	case err != nil:
		return fmt.Errorf("read the configuration: %w", err)
	case strings.EqualFold(filepath.Ext(name), ".properties"):
		l.properties(name, data, java)
	default:
		l.yaml(name, data)
	}
	return nil
}

// environment applies the variables, and notices misspelled ones.
func (l *loader) environment(vars map[string]string) {
	l.source = "environment"
	for _, s := range l.settings {
		if text := vars[env(s.path)]; text != "" {
			l.setKey(s.path, text, env(s.path))
		}
	}
	l.unknownVariables(vars)
}

// kubernetes matches the variables of Kubernetes for a service named leaf or leaf-*.
var kubernetes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^LEAF_(\w+_)?(SERVICE_(HOST|PORT\w*)=|PORT_\d+_|PORT=\w+://)`)
})

func (l *loader) unknownVariables(vars map[string]string) {
	known := []string{"CONFIG", "SERVER", "TOKEN", "CA_FILE", "CERT_FILE", "KEY_FILE"} // the file, and what other commands read
	for _, s := range l.settings {
		known = append(known, strings.TrimPrefix(env(s.path), "LEAF_"))
	}
	for _, variable := range slices.Sorted(maps.Keys(vars)) {
		name, ours := strings.CutPrefix(variable, "LEAF_")
		value := vars[variable]
		if !ours || value == "" || slices.Contains(known, name) || kubernetes().MatchString(variable+"="+value) {
			continue
		}
		notice := variable + " is not a setting and is ignored"
		if near := nearest(name, known); near != "" {
			notice += "; did you mean LEAF_" + near + "?"
		}
		l.notices = append(l.notices, notice)
	}
}

func (l *loader) setKey(path, text, where string) {
	if v := l.value(path); v.IsValid() {
		l.set(path, v, text, where)
	} else {
		l.problem(where, path, "no such key")
	}
}

func (l *loader) value(path string) reflect.Value {
	for _, s := range l.settings {
		if s.path == path {
			return s.value
		}
	}
	return reflect.Value{}
}

// set parses text into v, the setting at path.
func (l *loader) set(path string, v reflect.Value, text, where string) {
	if rival, ok := rivals[path]; ok {
		if text == "" {
			return
		}
		l.overrule(path, rival, where)
	}
	if v.Kind() == reflect.Map {
		l.mapText(path, v, text, where)
	} else if err := setText(v, text); err != nil {
		l.problem(where, path, err.Error())
		return
	}
	l.origins[path] = where
}

// rivals are two keys for one setting. A URL may be in a file of its own, to keep its password out
// of the configuration.
var rivals = map[string]string{"store": "store_file", "store_file": "store", "workers": "workers_file", "workers_file": "workers"}

// overrule unsets the rival of path: the later source wins, and no source may have both.
func (l *loader) overrule(path, rival, where string) {
	if l.sources[rival] == l.source && l.value(rival).String() != "" {
		l.problem(where, path, fmt.Sprintf("give either %s or %s, not both", rival, path))
	}
	l.value(rival).SetString("")
	l.sources[path] = l.source
}

// readURL reads the file that replaces the setting at path, if any.
func (l *loader) readURL(path string) {
	key := path + "_file"
	file := l.value(key).String()
	if file == "" || len(l.problems) > 0 {
		return
	}
	url, err := ReadURL(file)
	if err != nil {
		l.problem(l.origins[key], key, err.Error())
	}
	l.value(path).SetString(url)
}

// ReadURL returns the URL in a file with this one line.
func ReadURL(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	url := strings.TrimSpace(string(data))
	if url == "" || strings.ContainsAny(url, "\r\n") {
		return "", fmt.Errorf("%s: the file must hold one line, the URL", file)
	}
	return url, nil
}

// check adds the faults that Validate finds, with the places of the values.
func (l *loader) check() {
	for _, p := range l.cfg.Validate() {
		if p.Key == "segment.enable" && len(l.off) > 0 {
			p.Text = "nothing is left to serve: " + strings.Join(l.off, "; ")
		}
		l.problem(l.origin(p.Key), p.Key, p.Text)
	}
}

// origin returns the place of a key's value, or of the value that contains it.
func (l *loader) origin(path string) string {
	for ; ; path = path[:strings.LastIndexByte(path, '.')] {
		if where, ok := l.origins[path]; ok || !strings.Contains(path, ".") {
			return where
		}
	}
}
