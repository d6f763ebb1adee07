package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/edit"
)

// A key is one setting of a Config: its path in the file and where its value goes.
type key struct {
	path string
	dst  any // *string, *bool, *int, *int64, *time.Duration, *time.Time or *Layouts
}

// keys lists the settings of c in the order of its fields.
func keys(c *Config) []key { return appendKeys(nil, "", reflect.ValueOf(c).Elem()) }

func appendKeys(list []key, prefix string, v reflect.Value) []key {
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("yaml")
		if name == "" {
			continue
		}
		path := prefix + name
		f := v.Field(i)
		if _, isTime := f.Interface().(time.Time); f.Kind() == reflect.Struct && !isTime {
			list = appendKeys(list, path+".", f)
		} else {
			list = append(list, key{path, f.Addr().Interface()})
		}
	}
	return list
}

// env is the name of the environment variable that sets k.
func (k key) env() string {
	return "LEAF_" + strings.ToUpper(strings.ReplaceAll(k.path, ".", "_"))
}

// set parses text into k's value. Its errors do not repeat the text of a string,
// which may hold a password.
func (k key) set(text string) error {
	switch dst := k.dst.(type) {
	case *string:
		*dst = text
	case *bool:
		return setBool(dst, text)
	case *int:
		n, err := parseInt(text, strconv.IntSize)
		if err == nil {
			*dst = int(n)
		}
		return err
	case *int64:
		n, err := parseInt(text, 64)
		if err == nil {
			*dst = n
		}
		return err
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 10m, 1.5s or 500ms", text)
		}
		*dst = d
	case *time.Time:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("%q is not a time with its zone such as 2026-01-01T00:00:00Z or 2016-05-20T00:00:00+08:00", text)
		}
		*dst = t
	case *Layouts:
		layouts, err := parseLayouts(text)
		if err == nil {
			*dst = layouts
		}
		return err
	}
	return nil
}

func setBool(dst *bool, text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("%q is neither true nor false", text)
	}
	*dst = text == "true"
	return nil
}

// parseInt reads a whole number, in which underscores may group the digits.
func parseInt(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, bits)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s is too large", text)
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", text)
	}
	return n, nil
}

// nearest returns the candidate that text was most likely meant to be, or "".
// A path is also recognised by its last part, which catches a key in the wrong
// section.
func nearest(text string, candidates []string) string {
	best, bestDistance := "", max(2, len(text)/3)+1
	for _, c := range candidates {
		d := min(edit.Distance(text, c), edit.Distance(lastPart(text), lastPart(c))+1)
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

func lastPart(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
