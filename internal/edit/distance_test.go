package edit_test

import (
	"testing"

	"github.com/leaf-id/leaf/internal/edit"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"mysql", "mysql", 0}, {"", "abc", 3}, {"abc", "", 3},
		{"sqlit", "sqlite", 1}, {"mysqll", "mysql", 1}, {"mysxl", "mysql", 1},
		{"myslq", "mysql", 1}, {"kitten", "sitting", 3},
	} {
		if got := edit.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
