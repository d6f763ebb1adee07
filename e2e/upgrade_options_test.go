package e2e

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A server from before options of tags shares with one of this release a store where a tag has
// one. In SQL it serves the tag, ignores the option and leaves it there. In a key-value store it
// refuses the tag. No ID comes twice.
func TestOptionsBesideAnOlderServer(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	old := buildCommit(t, beforeOptions)
	for name, url := range map[string]string{
		"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "ids.db"),
		"mysql":  mariadb.URL(mariadb.NewDatabase(t)),
		"redis":  testserver.Redis(t, nil).URL(),
	} {
		t.Run(name, func(t *testing.T) { besideOlder(t, old, url, name != "redis") })
	}
}

func besideOlder(t *testing.T, old, url string, serves bool) {
	const plain, marked = "plain", "marked"
	leafCommand(t, "init", "--store", url)
	for _, tag := range []string{plain, marked} {
		leafCommand(t, "tag", "create", tag, "--step", "10", "--store", url)
	}
	option := segment.TagOptions{"later": "1"} // of a release to come: this one has the description alone
	wantOption(t, url, marked, option, true)

	servers := []*server{serve(t, "--store", url), serveBy(t, old, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--store", url)}
	seen := map[string]*drivertest.IDs{plain: {}, marked: {}} // each tag has its own numbers
	for range 50 {
		for i, s := range servers {
			for _, tag := range []string{plain, marked} {
				ids, err := s.ids(tag, 7)
				if wanted := i == 0 || serves; wanted && err != nil {
					t.Fatalf("%s of server %d: %v\n%s", tag, i, err, s.output())
				} else if !wanted && tag == marked && err == nil {
					t.Fatalf("the older server issued %v of a tag that it cannot read", ids)
				}
				seen[tag].Shard().Add(ids...)
			}
		}
	}
	if _, err := command(t, "tag", "set", marked, "--step", "20", "--server", servers[1].url); (err == nil) != serves {
		t.Errorf("the older server changes the tag: %v", err)
	}
	wantOption(t, url, marked, option, false)
	for tag, ids := range seen {
		if err := ids.Check(); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
	}
}

// wantOption compares the options of a tag in a store, after it has set them on request.
func wantOption(t *testing.T, url, tag string, option segment.TagOptions, set bool) {
	t.Helper()
	b, err := drivers.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	store, err := b.Store()
	if err != nil {
		t.Fatal(err)
	}
	var change segment.Change
	if set {
		change.Options = option
	} else {
		change.Step = new(int64(30))
	}
	got, err := store.(segment.Catalog).Alter(t.Context(), tag, change)
	if err != nil || !maps.Equal(got.Options, option) {
		t.Fatalf("the tag has %v, %v", got, err)
	}
}

// A server from before options of tags shares with one of this release a store with a tag of
// strict order or with periods. It issues no ID of it, and whatever an operator has it do, the order
// holds.
func TestStrictBesideAnOlderServer(t *testing.T) {
	stocklessBesideOlder(t, segment.TagOptions{segment.OptionOrder: segment.OrderStrictLossy})
}

func TestPeriodsBesideAnOlderServer(t *testing.T) {
	stocklessBesideOlder(t, segment.TagOptions{segment.OptionPeriod: "year", segment.OptionZone: "Asia/Tokyo"})
}

func stocklessBesideOlder(t *testing.T, options segment.TagOptions) {
	testserver.Long(t)
	t.Parallel()
	old := buildCommit(t, beforeOptions)
	for name, url := range map[string]string{
		"sqlite": "sqlite:" + filepath.Join(t.TempDir(), "ids.db"),
		"mysql":  mariadb.URL(mariadb.NewDatabase(t)),
		"redis":  testserver.Redis(t, nil).URL(),
	} {
		t.Run(name, func(t *testing.T) { strictBesideOlder(t, old, url, options) })
	}
}

func strictBesideOlder(t *testing.T, old, url string, options segment.TagOptions) {
	leafCommand(t, "init", "--store", url)
	args := []string{"tag", "create", labTag, "--store", url}
	for name, value := range options {
		args = append(args, "--"+name, value)
	}
	leafCommand(t, args...)
	ours := serve(t, "--store", url)
	older := serveBy(t, old, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--store", url)
	last := ours.next(labTag)
	again := func(after string) {
		t.Helper()
		for range 3 {
			if ids, err := older.ids(labTag, 7); err == nil {
				t.Fatalf("after %s the older server issued %v of a tag with %v", after, ids, options)
			}
			id := ours.next(labTag)
			if id <= last {
				t.Fatalf("after %s: %d after %d", after, id, last)
			}
			last = id
		}
	}
	again("its start")
	for _, args := range [][]string{
		{"tag", "set", labTag, "--step", "20"}, {"tag", "raise", labTag, "--by", "1000"}, {"tag", "observe", labTag, "--max", "5000"},
	} {
		_, err := command(t, append(args, "--server", older.url)...)
		t.Logf("the older server: leaf %q: %v", args, err)
		again(args[1])
	}
	wantOption(t, url, labTag, options, false)
}
