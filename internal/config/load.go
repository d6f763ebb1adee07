package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Source says where [Load] finds the settings. Its zero value means the
// defaults.
type Source struct {
	// File is the path of the configuration file. Empty: what LEAF_CONFIG names,
	// or none. A name ending in .properties is Java Leaf's, all else is YAML.
	File string

	// Env looks up an environment variable; an empty one counts as unset. nil: none
	// is set.
	Env func(name string) string

	// Environ holds all variables, as NAME=VALUE: those that look like settings and
	// are none are told in the notices.
	Environ []string

	// Flags holds the values given on the command line, by the path of their key.
	Flags map[string]string
}

// Load puts the defaults, the file, the environment and the flags together, in
// this order. Its error, of type [Problems] unless a file cannot be read, lists
// everything that is wrong. The notices, also returned beside an error, are for the
// log: they say what in a leaf.properties has no effect, and what is about to end.
func Load(src Source) (cfg Config, notices []string, err error) {
	env := src.Env
	if env == nil {
		env = func(string) string { return "" }
	}
	l := loader{cfg: Default(), origins: map[string]string{}}
	l.keys = keys(&l.cfg)
	if err := l.file(cmp.Or(src.File, env("LEAF_CONFIG"))); err != nil {
		return Config{}, nil, err
	}
	l.layer(func() { l.environment(env) })
	l.strangers(src.Environ)
	l.layer(func() { l.flags(src.Flags) })
	l.requireAddresses()
	for _, u := range l.urls() {
		if err := l.readURLFile(u); err != nil {
			return Config{}, l.notices, err
		}
	}
	if err := l.check(); err != nil {
		return l.cfg, l.notices, err
	}
	if l.cfg.Snowflake.Enable {
		l.notices = append(l.notices, ending(l.cfg.Snowflake.Served(), time.Now())...)
	}
	if l.cfg.ServesUID() {
		l.notices = append(l.notices, ending(l.cfg.UID.Served(), time.Now())...)
	}
	return l.cfg, l.notices, nil
}

type loader struct {
	cfg      Config
	keys     []key             // of cfg
	origins  map[string]string // by path: where the value was said
	javaFile string            // the leaf.properties that was read, and what it says
	java     javaSettings
	off      []string // why schemes of java are off
	notices  []string
	problems Problems
}

func (l *loader) file(name string) error {
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	l.layer(func() {
		if strings.EqualFold(filepath.Ext(name), ".properties") {
			l.properties(name, data)
			return
		}
		l.yaml(name, data)
	})
	return nil
}

func (l *loader) environment(env func(string) string) {
	for _, k := range l.keys {
		if text := env(k.env()); text != "" {
			l.set(k, text, k.env())
		}
	}
}

// otherEnv are the variables, without LEAF_ in front, that other commands read, or that name the file.
var otherEnv = []string{"CONFIG", "SERVER", "TOKEN"}

// kubernetes matches what Kubernetes sets for a service that is called leaf or leaf-*.
var kubernetes = regexp.MustCompile(`^LEAF_(\w+_)?(SERVICE_(HOST|PORT\w*)=|PORT_\d+_|PORT=\w+://)`)

// strangers notices variables that were meant to be settings.
func (l *loader) strangers(environ []string) {
	known := slices.Clone(otherEnv)
	for _, k := range l.keys {
		known = append(known, strings.TrimPrefix(k.env(), "LEAF_"))
	}
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(name, "LEAF_")
		if !ours || value == "" || slices.Contains(known, name) || kubernetes.MatchString(variable) {
			continue
		}
		notice := "LEAF_" + name + " is no setting and is ignored"
		if near := nearest(name, known); near != "" {
			notice += "; did you mean LEAF_" + near + "?"
		}
		l.notices = append(l.notices, notice)
	}
}

func (l *loader) flags(flags map[string]string) {
	for _, path := range slices.Sorted(maps.Keys(flags)) {
		l.set(key{path: path}, flags[path], "--"+strings.ReplaceAll(path, "_", "-"))
	}
}

// set gives the setting with k's path its value.
func (l *loader) set(k key, text, where string) {
	i := slices.IndexFunc(l.keys, func(own key) bool { return own.path == k.path })
	if i < 0 {
		l.problems = append(l.problems, Problem{where, k.path, "no such key"})
		return
	}
	if err := l.keys[i].set(text); err != nil {
		l.problems = append(l.problems, Problem{where, k.path, err.Error()})
		return
	}
	l.origins[k.path] = where
}

// A urlSetting is a setting that may stand in a file of its own, to keep a password out
// of other eyes.
type urlSetting struct {
	path      string
	url, file *string
	whose     string
}

func (l *loader) urls() []urlSetting {
	return []urlSetting{
		{"store", &l.cfg.Store, &l.cfg.StoreFile, "the store's"},
		{"workers", &l.cfg.Workers, &l.cfg.WorkersFile, "the worker registry's"},
	}
}

// layer applies one source of settings. A URL and the file that holds it are two ways
// to say the same thing: the later source wins as a whole.
func (l *loader) layer(apply func()) {
	type values struct{ url, file string }
	var before []values
	for _, u := range l.urls() {
		before = append(before, values{*u.url, *u.file})
		*u.url, *u.file = "", ""
	}
	apply()
	for i, u := range l.urls() {
		switch {
		case *u.url != "" && *u.file != "":
			l.problems = append(l.problems, Problem{l.origins[u.path+"_file"], u.path + "_file", fmt.Sprintf("give either %s or %[1]s_file, not both", u.path)})
		case *u.url == "" && *u.file == "":
			*u.url, *u.file = before[i].url, before[i].file
		}
	}
}

func (l *loader) readURLFile(u urlSetting) error {
	if *u.file == "" || len(l.problems) > 0 {
		return nil
	}
	var err error
	*u.url, err = ReadURL(*u.file)
	if errors.Is(err, errNotOneLine) {
		l.problems = append(l.problems, Problem{*u.file, u.path + "_file", fmt.Sprintf("the file must hold one line, %s URL", u.whose)})
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s URL (%s_file): %w", u.whose, u.path, err)
	}
	return nil
}

var errNotOneLine = errors.New("the file must hold one line, the URL")

// ReadURL returns the URL that is the only line of a file.
func ReadURL(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	url := strings.TrimSpace(string(data))
	if url == "" || strings.ContainsAny(url, "\r\n") {
		return "", fmt.Errorf("%s: %w", file, errNotOneLine)
	}
	return url, nil
}

// check adds what Validate finds, with the place where each value was said.
func (l *loader) check() error {
	if found, ok := l.cfg.Validate().(Problems); ok {
		for _, p := range found {
			p.Where = l.origin(p.Key)
			if p.Key == "segment.enable" && len(l.off) > 0 {
				p.Text = "nothing is left to serve: " + strings.Join(l.off, "; ")
			}
			l.problems = append(l.problems, p)
		}
	}
	return l.problems.err()
}

// origin returns where the value of a key, or of what it is part of, was said.
func (l *loader) origin(path string) string {
	if where, ok := l.origins[path]; ok {
		return where
	}
	if i := strings.LastIndexByte(path, '.'); i > 0 {
		return l.origin(path[:i])
	}
	return ""
}
