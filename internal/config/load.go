package config

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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
// log: they say what in a leaf.properties has no effect.
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
	l.requireAddress()
	if err := l.readStoreFile(); err != nil {
		return Config{}, l.notices, err
	}
	return l.cfg, l.notices, l.check()
}

type loader struct {
	cfg      Config
	keys     []key             // of cfg
	origins  map[string]string // by path: where the value was said
	java     string            // the leaf.properties that was read
	off      string            // why the segment scheme of java is off
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
		l.set(key{path: path}, flags[path], "--"+path)
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

// layer applies one source of settings. store and store_file are two ways to say
// the same thing: the later source wins as a whole.
func (l *loader) layer(apply func()) {
	store, storeFile := l.cfg.Store, l.cfg.StoreFile
	l.cfg.Store, l.cfg.StoreFile = "", ""
	apply()
	switch {
	case l.cfg.Store != "" && l.cfg.StoreFile != "":
		l.problems = append(l.problems, Problem{l.origins["store_file"], "store_file", "give either store or store_file, not both"})
	case l.cfg.Store == "" && l.cfg.StoreFile == "":
		l.cfg.Store, l.cfg.StoreFile = store, storeFile
	}
}

func (l *loader) readStoreFile() error {
	if l.cfg.StoreFile == "" || len(l.problems) > 0 {
		return nil
	}
	data, err := os.ReadFile(l.cfg.StoreFile)
	if err != nil {
		return fmt.Errorf("read the store's URL (store_file): %w", err)
	}
	l.cfg.Store = strings.TrimSpace(string(data))
	if l.cfg.Store == "" || strings.ContainsAny(l.cfg.Store, "\r\n") {
		l.problems = append(l.problems, Problem{l.cfg.StoreFile, "store_file", "the file must hold one line, the store's URL"})
	}
	return nil
}

// check adds what Validate finds, with the place where each value was said.
func (l *loader) check() error {
	if found, ok := l.cfg.Validate().(Problems); ok {
		for _, p := range found {
			p.Where = l.origins[p.Key]
			if p.Key == "segment.enable" && l.off != "" {
				p.Text = "nothing is left to serve: " + l.off
			}
			l.problems = append(l.problems, p)
		}
	}
	return l.problems.err()
}
