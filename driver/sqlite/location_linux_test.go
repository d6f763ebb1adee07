package sqlite

import "testing"

func TestPlaceOfMount(t *testing.T) {
	if p, err := locate("/proc"); err != nil || p.mount == p.folder {
		t.Errorf("/proc: %+v, %v, want a mount that is not its folder's", p, err)
	}
}
