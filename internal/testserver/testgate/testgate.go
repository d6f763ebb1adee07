// Package testgate makes gates that know tokens, for tests.
package testgate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/leaf-id/leaf/internal/server/access"
)

// New returns a gate with the tokens of a file with this text.
func New(t testing.TB, opts access.Options, text string) *access.Gate {
	t.Helper()
	gate := access.New(opts)
	Require(t, gate, opts, text)
	return gate
}

// Require has a gate with these options know the tokens of a file with this text.
func Require(t testing.TB, gate *access.Gate, opts access.Options, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	commit, err := gate.Prepare(opts.PublicRead, opts.Limits, file)
	if err != nil {
		t.Fatal(err)
	}
	commit()
}
