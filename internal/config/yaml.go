package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

var tabIndent = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^ *\t`)
})

func (l *loader) yaml(file string, data []byte) {
	root, err := parseYAML(data)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "yaml: ")
		if tabIndent().Match(data) {
			text += "; indent with spaces, not with tabs"
		}
		l.problem(file, "", text)
		return
	}
	l.cfg.EmptyFile = root.Kind == yaml.ScalarNode && root.Tag == "!!null"
	where := func(n *yaml.Node) string { return fmt.Sprintf("%s:%d", file, n.Line) }
	decoder{l, where}.decode("", root, root, reflect.ValueOf(l.cfg).Elem())
}

// parseYAML returns the one document in data, or an empty value.
func parseYAML(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); err == nil {
		return nil, fmt.Errorf("line %d: a second YAML document begins; there must be one", more.Line)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return doc.Content[0], nil
}

// A decoder puts YAML into the fields with its keys. Unlike the library's own it keeps
// where each value stands, and takes neither 1.5 for 1 nor a time without its zone.
type decoder struct {
	*loader
	where func(*yaml.Node) string
}

// decode puts n, the value of the key name at path, into v.
func (d decoder) decode(path string, name, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	isMap := v.Kind() == reflect.Map
	isText := !isMap && (!isSection(v) || v.Type() == reflect.TypeFor[Layout]())
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
	case n.Kind == yaml.ScalarNode && isText:
		d.set(path, v, n.Value, d.where(name))
	case n.Kind == yaml.SequenceNode && v.Kind() == reflect.Slice:
		d.list(path, name, n, v)
	case n.Kind == yaml.MappingNode && isMap:
		v.Set(reflect.MakeMap(v.Type()))
		d.entries(path, n, func(path string, name, n *yaml.Node) {
			entry := newEntry(v.Type())
			d.decode(path, name, n, entry)
			v.SetMapIndex(reflect.ValueOf(name.Value), entry)
		})
	case n.Kind == yaml.MappingNode && isSection(v):
		d.entries(path, n, func(path string, name, n *yaml.Node) { d.field(path, name, n, v) })
	case v.Kind() == reflect.Slice:
		d.problem(d.where(name), path, "this must be a list such as [a, b]")
	case isMap || isSection(v):
		d.problem(d.where(name), path, "this must be a list of keys with their values")
	default:
		d.problem(d.where(name), path, "this must be a single value")
	}
}

func (d decoder) list(path string, name, n *yaml.Node, v reflect.Value) {
	var texts []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			d.problem(d.where(item), path, "this must be a list such as [a, b]")
			return
		}
		texts = append(texts, item.Value)
	}
	d.origins[path] = d.where(name)
	v.Set(reflect.ValueOf(texts))
}

// entries calls do for each key of n, and remembers where it stands.
func (d decoder) entries(prefix string, n *yaml.Node, do func(path string, name, n *yaml.Node)) {
	lines := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i]
		path := strings.TrimPrefix(prefix+"."+name.Value, ".")
		if line := lines[name.Value]; line > 0 {
			d.problem(d.where(name), path, fmt.Sprintf("this key is on line %d already", line))
			continue
		}
		lines[name.Value] = name.Line
		d.origins[path] = d.where(name)
		do(path, name, n.Content[i+1])
	}
}

// field puts n into the field of section for the key name.
func (d decoder) field(path string, name, n *yaml.Node, section reflect.Value) {
	var known []string
	for field, value := range section.Fields() {
		key := field.Tag.Get("yaml")
		if key == name.Value && key != "" {
			d.decode(path, name, n, value)
			return
		}
		known = append(known, strings.TrimSuffix(path, lastPart(path))+key)
	}
	for _, s := range d.settings {
		known = append(known, s.path)
	}
	d.problem(d.where(name), path, "no such key"+didYouMean(path, known))
}

var mapExamples = map[string]string{
	"snowflake.layouts": "{game: js53, shop: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 10, sequence: 12}}",
	"segment.mask_keys": "{k1: /run/secrets/k1, k2: env:MASK_KEY_2}",
	"limits.tags":       "{order.*: {rate: 1000, burst: 5000}, trial: {quota: 10_000}}",
}

func newEntry(of reflect.Type) reflect.Value {
	entry := reflect.New(of.Elem())
	if l, ok := entry.Interface().(*Layout); ok {
		*l = newLayout()
	}
	return entry.Elem()
}

// mapText parses a map on one line, as in a variable, into v.
func (l *loader) mapText(path string, v reflect.Value, text, where string) {
	n, err := parseYAML([]byte(text))
	if err != nil || n.Kind != yaml.MappingNode {
		l.problem(where, path, fmt.Sprintf("%q is not a list such as %s", text, mapExamples[path]))
		return
	}
	decoder{l, func(*yaml.Node) string { return where }}.decode(path, n, n, v)
}
