package config

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/leaf-id/leaf/mask"
	"github.com/leaf-id/leaf/segment"
)

// readMaskKeys reads the keys of masks. No problem shows one.
func (l *loader) readMaskKeys(vars map[string]string) {
	const path = "segment.mask_keys"
	for _, name := range slices.Sorted(maps.Keys(l.cfg.Segment.MaskKeys)) {
		key, err := readMaskKey(name, l.cfg.Segment.MaskKeys[name], vars)
		if err != nil {
			l.problem(l.origin(path+"."+name), path, err.Error())
			continue
		}
		if l.cfg.Segment.Keys == nil {
			l.cfg.Segment.Keys = make(segment.MaskKeys)
		}
		l.cfg.Segment.Keys[name] = key
	}
}

func readMaskKey(name, where string, vars map[string]string) (mask.Key, error) {
	if err := segment.CheckMaskKeyName(name); err != nil {
		return mask.Key{}, err
	}
	text := ""
	if variable, ok := strings.CutPrefix(where, "env:"); ok {
		text = vars[variable]
	} else if data, err := os.ReadFile(where); err != nil {
		return mask.Key{}, err
	} else {
		text = string(data)
	}
	key, err := mask.ParseKey(text)
	if err != nil {
		return mask.Key{}, fmt.Errorf("%s, in %q: %w", name, where, err)
	}
	return key, nil
}
