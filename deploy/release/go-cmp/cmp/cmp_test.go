package cmp

import "testing"

func TestDiff(t *testing.T) {
	x := map[string]string{"counter": "1"}
	if got := Diff(x, map[string]string{"counter": "1"}); got != "" {
		t.Errorf("equal maps differ by %q", got)
	}
	for _, y := range []map[string]string{nil, {}, {"counter": "2"}, {"counter": "1", "tag": ""}} {
		if Diff(x, y) == "" || Diff(y, x) == "" {
			t.Errorf("%v and %v do not differ", x, y)
		}
	}
}
