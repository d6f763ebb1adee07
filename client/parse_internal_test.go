package client

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		servers []string
		token   string
	}{
		"http://a:1":               {[]string{"http://a:1"}, ""},
		"leaf://a:1,b:2/":          {[]string{"http://a:1", "http://b:2"}, ""},
		"LEAFS://a":                {[]string{"https://a"}, ""},
		"https://to%40ken@a:1,b:2": {[]string{"https://a:1", "https://b:2"}, "to@ken"},
		"https://to@ken@a":         {[]string{"https://a"}, "to@ken"},
		"http://@a":                {[]string{"http://a"}, ""},
	} {
		servers, token, err := parse(text)
		if err != nil || !slices.Equal(servers, want.servers) || token != want.token {
			t.Errorf("%s: %v, %q, %v", text, servers, token, err)
		}
	}
	for text, want := range map[string]string{
		"a:1":               "begin with http",
		"://a":              "begin with http",
		"ftp://a":           "begin with http",
		"http://%zz@a":      "before the @",
		"http://u:p@a":      "before the @",
		"http://a,http://b": "one scheme",
	} {
		if servers, token, err := parse(text); err == nil || servers != nil || token != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %q, %v", text, servers, token, err)
		}
	}
}

// Each grant, and no error, adds its tag to the list, or changes its step.
func TestStoreRemembersGrants(t *testing.T) {
	s, failed := new(store), errors.New("x")
	for _, c := range []struct {
		tag  string
		step int64
		err  error
		want map[string]int64
	}{
		{"none", 3, failed, nil}, {"a", 5, nil, map[string]int64{"a": 5}}, {"b", 7, nil, map[string]int64{"a": 5, "b": 7}},
		{"a", 6, nil, map[string]int64{"a": 6, "b": 7}}, {"b", 9, failed, map[string]int64{"a": 6, "b": 7}},
	} {
		g, err := s.remember(c.tag)(segment.Grant{Step: c.step}, c.err)
		if g.Step != c.step || err != c.err || !maps.Equal(s.steps, c.want) {
			t.Errorf("%+v: passed on %+v, %v; the list is %v", c, g, err, s.steps)
		}
	}
}

// The store lists the tags that it granted IDs of, for callers who read on or stop.
func TestStoreListsGrantedTags(t *testing.T) {
	s := &store{steps: map[string]int64{"order": 7, "user": 9}}
	got := map[string]int64{}
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got[tag.Name] = tag.Step
	}
	if len(got) != 2 || got["order"] != 7 || got["user"] != 9 {
		t.Errorf("got %v", got)
	}
	n := 0
	s.Tags(t.Context())(func(segment.Tag, error) bool { n++; return false })
	if n != 1 {
		t.Errorf("listed %d tags to a caller who stops at the first one", n)
	}
}
