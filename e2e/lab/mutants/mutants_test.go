package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A package with one place for each kind of fault, and a test that notices some.
const (
	sample = `package sample

import "errors"

type pair struct{ a, b int }

const fixed = 2 < 3

func limit(n, most int) (int, error) {
	if n < 0 {
		return 0, errors.New("negative")
	}
	n += fixedSum(n)
	return min(n, most), nil
}

func fixedSum(n int) int { return n*2 - n }

func odd(n int) bool { return n&1 == 1 || n > 100 && fixed }

func swap(p pair) pair {
	var q pair
	q = pair{a: p.b, b: p.a}
	for q.a <= 0 {
		q.a++
	}
	return q
}

func forever(stop bool) {
	for {
		if stop {
			break
		}
	}
}
`
	sampleTest = `package sample

import "testing"

func TestLimit(t *testing.T) {
	if _, err := limit(-1, 5); err == nil {
		t.Error("negative")
	}
	if n, _ := limit(2, 5); n != 4 {
		t.Errorf("got %d", n)
	}
	forever(true)
}
`
)

func sampleModule(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module github.com/leaf-id/leaf\n\ngo 1.26.0\n", "sample/sample.go": sample, "sample/sample_test.go": sampleTest,
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Every fault compiles; a test notices those that it can, and ends those that hang.
func TestMutants(t *testing.T) {
	root := sampleModule(t)
	faults, err := find(t.Context(), root, "sample")
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSuite(t.Context(), root, "sample", t.TempDir(), faults, 2)
	if err != nil {
		t.Fatal(err)
	}
	if s.refused > 0 {
		t.Errorf("%d faults do not compile", s.refused)
	}
	noticed := map[string]bool{}
	s.try(t.Context(), time.Hour, 4, func(o outcome) {
		noticed[strings.TrimPrefix(o.key, "sample/sample.go ")] = o.err != nil && !errors.Is(o.err, errUnrun)
	})
	for key, want := range map[string]bool{
		"limit: does nothing: limit":                true,
		"limit: is false: n < 0":                    true,
		"limit: is true: n < 0":                     true,
		"limit: or equal: n < 0":                    false,
		"limit: no error: errors.New(\"negative\")": true,
		"limit: removed: n += fixedSum(n)":          true,
		"limit: becomes -=: n += fixedSum(n)":       true,
		"limit: becomes max: min(n, most)":          true,
		"fixedSum: becomes /: n*2":                  true,
		"fixedSum: becomes +: n*2 - n":              true,
		"odd: becomes |: n&1":                       false,
		"odd: is false: n&1 == 1":                   false,
		"odd: is true: n > 100":                     false,
		"swap: zero for a: p.b":                     false,
		"swap: not equal: q.a <= 0":                 false,
		"swap: is false: q.a <= 0":                  false,
		"swap: removed: q.a++":                      false,
		"forever: removed: break":                   true, // it hangs
		"forever: is false: stop":                   true,
		"swap: removed: q = pair{a: p.b, b: p.a}":   false,
		"odd: does nothing: odd":                    false,
		"forever: does nothing: forever":            false,
		"swap: does nothing: swap":                  false,
	} {
		if got, ok := noticed[key]; !ok || got != want {
			t.Errorf("%s: planted: %v, noticed: %v, want %v", key, ok, got, want)
		}
		delete(noticed, key)
	}
	for key := range noticed {
		if strings.Contains(key, "2 < 3") || strings.Contains(key, "is true: q.a") || strings.Contains(key, "&& fixed") {
			t.Errorf("%s is planted", key)
		}
	}
}

// Every explained fault can still be planted.
func TestExplained(t *testing.T) {
	known, err := readExplained(explained)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(known)), func(key string) bool { return strings.HasPrefix(key, folder+"/") }) {
			continue
		}
		faults, err := find(t.Context(), root, folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			delete(known, f.key)
		}
	}
	for key := range known {
		t.Errorf("explained.txt: no such fault can be planted: %s", key)
	}
	if _, err := readExplained("\ta reason\n"); err == nil {
		t.Error("a reason without a fault is read")
	}
	got, err := readExplained("# of all\na\nb\n\twhy\n\tindeed\n\nc\n\tmore\n")
	if err != nil || got["a"] != "why indeed" || got["b"] != "why indeed" || got["c"] != "more" {
		t.Errorf("got %v, %v", got, err)
	}
}

// A fault that a test notices though explained.txt says that none can is named; one that no test runs
// has a column of its own.
func TestCount(t *testing.T) {
	r := row{folder: "sample", all: 9}
	for _, o := range []struct {
		key       string
		err       error
		explained bool
	}{
		{"failed", errors.New("failed"), false}, {"hung", errHung, false}, {"outdated", errHung, true},
		{"equal", nil, true}, {"survivor", nil, false}, {"unrun", errUnrun, false}, {"unrun, explained", errUnrun, true},
	} {
		r.count(outcome{fault{key: o.key}, o.err}, o.explained)
	}
	if !slices.Equal(r.outdated, []string{"outdated"}) || !slices.Equal(r.equal, []string{"equal", "unrun, explained"}) {
		t.Errorf("outdated %v, equal %v", r.outdated, r.equal)
	}
	if got, want := r.line(), "| sample | 9 | 7 | 3 | 2 | 2 | 1 | 1 | 60.0 % |\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
