package sqlite

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// A rename changes the file without a write.
func TestUnsettled(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		written, changed time.Duration // before now
		want             bool
	}{
		"moved just now":  {time.Hour, time.Millisecond, true},
		"moved":           {time.Hour, time.Minute, false},
		"written":         {time.Millisecond, time.Millisecond, false},
		"of a later time": {time.Hour, -time.Minute, false},
	} {
		if p := (location{written: now.Add(-tt.written), changed: now.Add(-tt.changed)}); p.unsettled(now) != tt.want {
			t.Errorf("%s: %v", name, !tt.want)
		}
	}
	if (location{}).unsettled(now) {
		t.Error("a file without known times is not settled")
	}
}
