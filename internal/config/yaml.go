package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yaml hands every setting in data to set, with the line it stands on, and notes what
// is wrong with the rest: keys that do not exist, that stand twice, or that are no
// single value.
func (l *loader) yaml(file string, data []byte) {
	root, err := parseNode(data)
	if err != nil {
		l.problems = append(l.problems, Problem{Where: file, Text: strings.TrimPrefix(err.Error(), "yaml: ")})
		return
	}
	r := yamlReader{loader: l, name: file, seen: map[string]int{}}
	if root != nil {
		r.mapping("", root)
	}
}

// parseNode returns the one document in data, nil where there is none.
func parseNode(data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
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

type yamlReader struct {
	*loader
	name string
	seen map[string]int // path to line
}

func (r *yamlReader) where(n *yaml.Node) string { return fmt.Sprintf("%s:%d", r.name, n.Line) }

func (r *yamlReader) problem(n *yaml.Node, path, text string) {
	r.problems = append(r.problems, Problem{r.where(n), path, text})
}

// mapping reads the section n; prefix is its path and a dot.
func (r *yamlReader) mapping(prefix string, n *yaml.Node) {
	switch {
	case isNull(n):
		return
	case n.Kind != yaml.MappingNode:
		r.problem(n, strings.TrimSuffix(prefix, "."), "this must be a list of keys with their values")
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		r.entry(prefix+n.Content[i].Value, n.Content[i], n.Content[i+1])
	}
}

func (r *yamlReader) entry(path string, name, value *yaml.Node) {
	if line := r.seen[path]; line > 0 {
		r.problem(name, path, fmt.Sprintf("this key stands on line %d already", line))
		return
	}
	r.seen[path] = name.Line
	if value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	k, section, ok := r.find(path)
	switch {
	case !ok:
		r.unknown(path, name)
	case section:
		r.mapping(path+".", value)
	case isNull(value):
	case isLayouts(k):
		r.layouts(k, name, value)
	case value.Kind != yaml.ScalarNode:
		r.problem(value, path, "this must be a single value")
	default:
		r.set(k, value.Value, r.where(name))
	}
}

// find looks path up; section says that it names a group of keys.
func (r *yamlReader) find(path string) (k key, section, ok bool) {
	for _, k := range r.keys {
		if k.path == path {
			return k, false, true
		}
		if strings.HasPrefix(k.path, path+".") {
			return key{}, true, true
		}
	}
	return key{}, false, false
}

func (r *yamlReader) unknown(path string, name *yaml.Node) {
	var candidates []string
	for _, k := range r.keys {
		candidates = append(candidates, k.path)
		if section, _, ok := strings.Cut(k.path, "."); ok {
			candidates = append(candidates, section)
		}
	}
	r.problem(name, path, unknownKey(path, candidates))
}

// unknownKey says what is wrong with a key.
func unknownKey(name string, known []string) string {
	text := "no such key"
	if near := nearest(name, known); near != "" {
		text += fmt.Sprintf("; did you mean %s?", near)
	}
	return text
}

func isLayouts(k key) bool { _, ok := k.dst.(*Layouts); return ok }

// layouts reads the layouts of k, and where each of them stands.
func (r *yamlReader) layouts(k key, name, n *yaml.Node) {
	*k.dst.(*Layouts) = layoutsReader{r.problem}.read(k.path, n)
	r.origins[k.path] = r.where(name)
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			r.origins[k.path+"."+n.Content[i].Value] = r.where(n.Content[i])
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }
