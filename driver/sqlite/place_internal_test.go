package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
)

// This test cannot make a mount of a single file: see the end-to-end tests.
func TestPlace(t *testing.T) {
	for name, c := range map[string]struct {
		fileID
		want string
	}{
		"one name":           {fileID{names: 1, mount: 29, folder: 29}, ""},
		"names not known":    {fileID{mount: 29, folder: 29}, ""},
		"removed":            {fileID{names: 0}, ""},
		"two names":          {fileID{names: 2, mount: 29, folder: 29}, "has 2 names (hard links)"},
		"mounted":            {fileID{names: 1, mount: 30, folder: 29}, "mount the folder"},
		"two names, mounted": {fileID{names: 2, mount: 30, folder: 29}, "has 2 names (hard links)"},
	} {
		err := c.check("/srv/ids.db")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	if p, err := placeOf(t.TempDir()); err != nil || p.mount != p.folder {
		t.Errorf("a folder: %+v, %v", p, err)
	}
	if _, err := placeOf(filepath.Join(t.TempDir(), "no")); err == nil {
		t.Error("a file that is not there has a place")
	}
}
