package failures_test

import (
	"errors"
	"testing"

	"github.com/leaf-id/leaf/internal/failures"
)

func TestList(t *testing.T) {
	a, b := errors.New("a"), errors.New("b")
	for want, list := range map[string]failures.List{"": nil, "a": {a}, "a; b": {b, a}} {
		err := list.Err()
		if (err == nil) != (want == "") || err != nil && (err.Error() != want || !errors.Is(err, a)) {
			t.Errorf("%v becomes %v, want %q", []error(list), err, want)
		}
	}
}
