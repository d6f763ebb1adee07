package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/internal/edit"
)

// A setting is one key of a Config.
type setting struct {
	path  string        // in the file, as in segment.max_stock
	value reflect.Value // of the field
	rule  string        // which values are valid: the field's tag
	live  bool          // a server takes it up while it runs
}

// settings lists the keys of c in the order of its fields.
func settings(c *Config) []setting { return appendSettings(nil, "", reflect.ValueOf(c).Elem(), false) }

func appendSettings(list []setting, prefix string, v reflect.Value, allLive bool) []setting {
	for field, value := range v.Fields() {
		path := prefix + field.Tag.Get("yaml")
		live := allLive || field.Tag.Get("live") == "yes"
		switch {
		case path == prefix: // not a key
		case isSection(value):
			list = appendSettings(list, path+".", value, live)
		default:
			list = append(list, setting{path, value, field.Tag.Get("check"), live})
		}
	}
	return list
}

// isSection reports whether v holds keys of its own.
func isSection(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]()
}

// env is the name of the environment variable that sets the key at path.
func env(path string) string {
	return "LEAF_" + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// flag is the name of the flag of 'leaf serve' for the key at path, if it has one.
func flag(path string) string { return "--" + strings.ReplaceAll(path, "_", "-") }

// setText parses text into v. Its errors do not repeat the text of a string, which may
// hold a password.
func setText(v reflect.Value, text string) error {
	switch dst := v.Addr().Interface().(type) {
	case *string:
		*dst = text
	case *bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*dst = text == "true"
	case *time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 10m, 1.5s or 500ms", text)
		}
		*dst = d
	case *Size:
		n, err := parseSize(text)
		if err != nil {
			return err
		}
		*dst = n
	case *time.Time:
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("%q is not a time with its zone such as 2026-01-01T00:00:00Z or 2016-05-20T00:00:00+08:00", text)
		}
		*dst = t
	case *[]string:
		*dst = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	case *Layout:
		*dst = Layout{Preset: text}
	default:
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, v.Type().Bits())
		if errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%s is too large", text)
		}
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		v.SetInt(n)
	}
	return nil
}

// check returns the fault of s by its rule, or "".
func (s setting) check() string {
	value := fmt.Sprint(s.value.Interface())
	switch {
	case s.rule == "required" && value == "":
		return "it is empty"
	case s.rule == "host:port":
		return checkAddress(value)
	case s.rule == "collector":
		return checkCollector(value)
	case s.rule == "peers":
		return checkPeers(s.value.Interface().([]string))
	case s.rule == "origins":
		return checkOrigins(s.value.Interface().([]string))
	case s.rule == addressOrOff && value != Off:
		if wrong := checkAddress(value); wrong != "" {
			return wrong + ", nor off"
		}
		return ""
	case s.rule == ">0" && s.value.Int() <= 0:
		return value + " is not above 0"
	case strings.Contains(s.rule, "|"):
		return oneOf(value, strings.Split(s.rule, "|"))
	}
	low, high, ok := strings.Cut(s.rule, "..")
	switch {
	case !ok:
		return ""
	case high == "" && s.value.Int() < s.bound(low).Int():
		return fmt.Sprintf("%s is below %s", value, low)
	case high != "" && (s.value.Int() < s.bound(low).Int() || s.value.Int() > s.bound(high).Int()):
		return fmt.Sprintf("%s is not in %s … %s", value, low, high)
	}
	return ""
}

func (s setting) bound(text string) reflect.Value {
	v := reflect.New(s.value.Type()).Elem()
	if err := setText(v, text); err != nil {
		panic(err) // a bad tag
	}
	return v
}

// addressOrOff is the rule of an address or off.
const addressOrOff = "host:port|" + Off

func checkAddress(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Sprintf("%q is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces", addr)
	}
	return ""
}

// checkPeers names a peer that is not HOST:PORT with a host.
func checkPeers(peers []string) string {
	for _, peer := range peers {
		if host, port, err := net.SplitHostPort(peer); err != nil || host == "" || port == "" {
			return fmt.Sprintf("%q is not HOST:PORT of a peer, such as h1:2380", peer)
		}
	}
	return ""
}

// checkCollector returns the fault of a collector's URL. It does not quote the URL, which may have
// a password.
func checkCollector(text string) string {
	if text == "" || text == Off {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return "it is neither a URL such as http://host:4318 nor off"
	case u.User != nil:
		return "it holds a user or a password, which belongs into the environment variable OTEL_EXPORTER_OTLP_HEADERS"
	}
	return ""
}

func checkOrigins(origins []string) string {
	for _, origin := range origins {
		u, err := url.Parse(strings.Replace(origin, ":*", ":0", 1)) // a * for the port
		if origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != strings.Replace(origin, ":*", ":0", 1) ||
			strings.Count(origin, "*") > 1) {
			return fmt.Sprintf("%q is not SCHEME://HOST or SCHEME://HOST:PORT, such as https://shop.example.com, with at most one *", origin)
		}
	}
	return ""
}

// oneOf reports a value outside the allowed ones, or returns "".
func oneOf(value string, allowed []string) string {
	if slices.Contains(allowed, value) {
		return ""
	}
	return fmt.Sprintf("%q is not one of %s", value, strings.Join(allowed, ", ")) + didYouMean(value, allowed)
}

func didYouMean(text string, candidates []string) string {
	if near := nearest(text, candidates); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// nearest returns the most likely intended candidate, or "". It also recognises the last part of a
// path, for a key in the wrong section.
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
