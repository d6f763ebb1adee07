package access_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/server/access"
)

func TestNewToken(t *testing.T) {
	looks := regexp.MustCompile(`^leaf_[0-9A-Za-z]{49}$`)
	seen := map[string]bool{}
	for range 1000 {
		token := access.NewToken()
		if !looks.MatchString(token) || seen[token] || access.CheckToken(token) != nil {
			t.Fatalf("%s: seen %v, %v", token, seen[token], access.CheckToken(token))
		}
		seen[token] = true
	}
}

func TestCheckToken(t *testing.T) {
	token := access.NewToken()
	for _, text := range []string{"", "hunter2", token[1:], token[:len(token)-1], token + "0", " " + token, strings.ToUpper(token), flip(token, 10), flip(token, 53)} {
		err := access.CheckToken(text)
		if err == nil {
			t.Errorf("%q is taken for a token", text)
		} else if len(text) > 6 && strings.Contains(err.Error(), text) {
			t.Errorf("the error holds the text: %v", err)
		}
	}
}

// flip changes one character.
func flip(text string, at int) string {
	other := byte('a')
	if text[at] == other {
		other = 'b'
	}
	return text[:at] + string(other) + text[at+1:]
}

func TestHashToken(t *testing.T) {
	const want = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of FIPS 180-2
	if got := access.HashToken("abc"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
