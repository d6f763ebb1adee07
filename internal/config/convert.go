package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Convert returns the YAML file with the same effect as the leaf.properties in src. The text has
// the password of the database. The error, of type [Problems] unless the file is unreadable, is the
// reason why no server would start with it. The notices are for an operator, such as settings
// without an effect; the text has them too.
func Convert(src Source) (text string, notices []string, err error) {
	cfg, notices, err := Load(src)
	if err != nil {
		return "", notices, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Made from %s by 'leaf config convert'; 'leaf config example' explains the keys.\n", strconv.Quote(src.File))
	if cfg.Store != "" {
		b.WriteString("# CAUTION: this file holds the password of the database. Let only the server read it\n" +
			"# (chmod 600), or move the URL into a file of its own and name that in store_file.\n")
	}
	for _, n := range notices {
		fmt.Fprintf(&b, "# Note: %s\n", n)
	}
	changed, err := yaml.Marshal(changes(&cfg))
	b.Write(changed)
	return b.String(), notices, err
}

// changes returns the settings of cfg that differ from the defaults, by section and name.
func changes(cfg *Config) map[string]any {
	defaults := Default()
	standard := settings(&defaults)
	changed := map[string]any{}
	for i, s := range settings(cfg) {
		value := s.value.Interface()
		if reflect.DeepEqual(value, standard[i].value.Interface()) {
			continue
		}
		section, name, inside := strings.Cut(s.path, ".")
		if !inside {
			changed[section] = value
			continue
		}
		if changed[section] == nil {
			changed[section] = map[string]any{}
		}
		changed[section].(map[string]any)[name] = value
	}
	return changed
}
