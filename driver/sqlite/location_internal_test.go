package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

// This test cannot make a mount of a single file: see the end-to-end tests.
func TestLocation(t *testing.T) {
	for name, c := range map[string]struct {
		location
		want string
	}{
		"one name":           {location{names: 1, mount: 29, folder: 29}, ""},
		"names not known":    {location{mount: 29, folder: 29}, ""},
		"removed":            {location{names: 0}, ""},
		"two names":          {location{names: 2, mount: 29, folder: 29}, "has 2 names (hard links)"},
		"mounted":            {location{names: 1, mount: 30, folder: 29}, "mount the folder"},
		"two names, mounted": {location{names: 2, mount: 30, folder: 29}, "has 2 names (hard links)"},
	} {
		err := c.check("/srv/ids.db")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestLocate(t *testing.T) {
	if p, err := locate(t.TempDir()); err != nil || p.mount != p.folder {
		t.Errorf("a folder: %+v, %v", p, err)
	}
	if _, err := locate(filepath.Join(t.TempDir(), "no")); err == nil {
		t.Error("a file that is not there has a location")
	}
}
