package access_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/server/access"
)

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const secret = "leaf_0000000000000000000000000000000000000000000abcdef"

func TestBadFiles(t *testing.T) {
	hash := access.HashToken(secret)
	for _, tt := range []struct{ text, want string }{
		{"", "it lists no tokens"},
		{"tokens: []", "it lists no tokens"},
		{"tokens:\n- name: a\n  hsh: x\n", "line 3: unknown key hsh"},
		{"tokens:\n- name: a\n  name: b\n", "line 3: mapping key \"name\" already defined at line 2"},
		{"token: []", "line 1: unknown key token"},
		{"tokens:\n- name: a\n  hash: " + secret + "\n  take: [a]\n", "line 2: hash is a token itself"},
		{"tokens:\n- name: a\n  hash: 1234\n  take: [a]\n", "line 2: hash is not sha256: and 64 hexadecimal digits"},
		{"tokens:\n- name: a\n  take: [a]\n", "line 2: one of hash and certificate must be given"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  certificate: x\n  take: [a]\n", "line 2: one of hash and certificate"},
		{"tokens:\n- hash: " + hash + "\n  take: [a]\n", "line 2: name is missing"},
		{"tokens:\n- name: a\n  hash: " + hash, "line 2: it may do nothing"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  rights: [reed]", "line 2: rights holds something else than read, admin or worker"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  take: ['']", "line 2: a pattern in take is empty"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  take: [a]\n  schemes: [seg]", "line 2: schemes holds something else than segment, "},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  rights: [read]\n  schemes: [uid]", "line 2: schemes is of no use without take"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  rights: [read]\n  pools: [a]", "line 2: pools is of no use without the right worker"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  rights: [worker]\n  pools: ['']", "line 2: a pattern in pools is empty"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  take: [a]\n  limits: {burst: 1}", "line 2: limits: there is a burst but no rate"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  take: [a]\n  limits: {rate: " + secret + "}", "line 5: cannot unmarshal a str into this place"},
		{"tokens:\n- name: a\n  hash: " + hash + "\n  take: [a]\n  expires: soon", "line 2: expires is not a time"},
		{"tokens:\n- {name: a, hash: '" + hash + "', take: [a]}\n- {name: a, certificate: b, take: [a]}", "line 3: its name is that of line 2 too"},
		{"tokens:\n- {name: a, hash: '" + hash + "', take: [a]}\n- {name: b, hash: '" + hash + "', take: [a]}", "line 3: its hash is that of line 2 too"},
		{"tokens:\n- {name: a, certificate: b, take: [a]}\n---\ntokens: []", "a second YAML document"},
		{"tokens:\n- {name: a, hash: '" + hash + "', take: [a]}\n- {name: b, hash: 'sha256:" + strings.ToUpper(hash[7:]) + "', take: [a]}", "line 3: its hash is that of line 2 too"},
		{"- {name: a, hash: '" + hash + "', take: [a]}", `line 1: here is a list: put "tokens:" on a line before it`},
		{"tokens:\n- name: a\n  " + secret + ": x\n", "line 3: unknown key (a token)"},
		{"tokens:\n- name: a\n  hash: *" + secret + "\n", "unknown anchor '(a token)' referenced"},
		{"tokens: [", "line 1: "},
		{secret, "line 1: cannot unmarshal a str into this place"},
	} {
		_, err := access.ParseFile([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
		if err != nil && (strings.Contains(err.Error(), secret[:12]) || strings.Contains(err.Error(), "access.")) {
			t.Errorf("%q: the error holds a secret or a Go type: %v", tt.text, err)
		}
	}
}

// A file that others may write to is refused, as it gives rights; one that they may read is not.
func TestFileMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	writeFile(t, path, entry(secret, "take: [a]"))
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o644: true, 0o440: true, 0o620: false, 0o602: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := access.ReadFile(path); (err == nil) != ok || err != nil && !errors.Is(err, hint.ErrTokens) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	_, err := access.ReadFile(path + ".missing")
	if !errors.Is(err, os.ErrNotExist) || strings.Count(fmt.Sprint(err), path) != 1 {
		t.Errorf("no file: %v", err)
	}
}

// The file reads back a written entry.
func FuzzParseFile(f *testing.F) {
	f.Add("tokens:\n- {name: a, hash: '" + access.HashToken(secret) + "', take: ['order.*'], schemes: [uid], rights: [read], expires: 2027-01-01, limits: {rate: 1}}")
	f.Add("tokens: [{name: a, certificate: b, rights: [admin]}]")
	f.Add("tokens: [&a {name: x}, *a]")
	f.Add("tokens:\n- <<: {name: a}\n  take: [")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := access.ParseFile([]byte(text))
		if err != nil {
			return
		}
		again, err := yaml.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := access.ParseFile(again); err != nil {
			t.Errorf("%q is valid, but\n%s: %v", text, again, err)
		}
	})
}
