package hops

import (
	"errors"
	"slices"
	"testing"

	"github.com/leaf-id/leaf"
)

// A name that is among the others, at any place, or a ninth server, is an error.
func TestCheck(t *testing.T) {
	seven := []string{"A", "B", "C", "D", "E", "F", "G"}
	eight := append(slices.Clone(seven), "H")
	for _, c := range []struct {
		name  string
		names []string
		want  error
	}{
		{"A", nil, nil},
		{"X", seven, nil},
		{"X", eight, leaf.ErrUnsupported},
		{"A", eight, ErrLoop},
		{"H", eight, ErrLoop},
		{"D", seven, ErrLoop},
	} {
		err := Check(c.name, c.names)
		if !errors.Is(err, c.want) || errors.Is(err, ErrLoop) != (c.want == ErrLoop) {
			t.Errorf("%s behind %q: got %v, want %v", c.name, c.names, err, c.want)
		}
	}
}

// Names survive a header and a context.
func TestNames(t *testing.T) {
	names := []string{Name(), Name()}
	if got := Parse(Format(names)); !slices.Equal(got, names) || names[0] == names[1] {
		t.Errorf("got %q, want %q", got, names)
	}
	if got := Parse(""); got != nil {
		t.Errorf("an empty header names %q", got)
	}
	if got := From(With(t.Context(), names)); !slices.Equal(got, names) {
		t.Errorf("the context has %q, want %q", got, names)
	}
}
