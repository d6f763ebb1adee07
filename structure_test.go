package leaf_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/structure.md again")

const structureFile = "docs/structure.md"

// structureText comes before the picture.
const structureText = `# The structure of the code

Each box is a folder, each arrow an import. An import that another path implies is left
out. The picture is drawn from the imports by ` + "`make structure`" + `, and a test
compares it with them. A table in ` + "`imports_test.go`" + ` lists the permitted imports.

`

// rooms are the groups of the picture; a folder belongs to the first one with a matching prefix.
var rooms = []struct {
	title    string
	prefixes []string
}{
	{"the command", []string{"cmd/"}},
	{"the server", []string{"internal/server"}},
	{"drivers", []string{"driver/", "internal/sqlstore"}},
	{"behind the front ends", []string{"internal/"}},
	{"protocols", []string{"api"}},
	{"the library", []string{""}},
}

// TestStructure compares the picture in the documentation with the imports. The go command
// does not know that it reads other folders: run it with -count=1.
func TestStructure(t *testing.T) {
	want := structureText + "```mermaid\n" + picture(arrows(listPackages(t))) + "```\n"
	if *update {
		if err := os.WriteFile(structureFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(structureFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the imports; 'make structure' draws it again (-want +got):\n%s", structureFile, diff)
	}
}

// arrows returns for each folder those that it imports, without those that it reaches
// through another one of them.
func arrows(packages []listed) map[string][]string {
	reaches := map[string][]string{} // directly or not
	direct := map[string][]string{}
	for _, p := range packages {
		from, _ := folderOf(p.ImportPath)
		if testOnly(from) {
			continue
		}
		reaches[from], direct[from] = ourFolders(p.Deps), ourFolders(p.Imports)
	}
	for from, to := range direct {
		direct[from] = slices.DeleteFunc(to, func(folder string) bool {
			return slices.ContainsFunc(to, func(other string) bool { return other != folder && slices.Contains(reaches[other], folder) })
		})
	}
	return direct
}

func ourFolders(paths []string) (folders []string) {
	for _, path := range paths {
		if folder, ours := folderOf(path); ours && !testOnly(folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders
}

func testOnly(folder string) bool {
	return within(folder, "driver/drivertest") || folder == "internal/testserver" || folder == "worker/model"
}

// picture writes the arrows as a Mermaid flow chart.
func picture(arrows map[string][]string) string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	folders := slices.Sorted(maps.Keys(arrows))
	for _, room := range rooms {
		var inside []string
		folders = slices.DeleteFunc(folders, func(folder string) bool {
			in := slices.ContainsFunc(room.prefixes, func(prefix string) bool { return strings.HasPrefix(folder, prefix) })
			if in {
				inside = append(inside, folder)
			}
			return in
		})
		fmt.Fprintf(&b, "    subgraph %q\n", room.title)
		for _, folder := range inside {
			fmt.Fprintf(&b, "        %s[%q]\n", node(folder), strings.Replace(folder, ".", "leaf (the root)", 1))
		}
		b.WriteString("    end\n")
	}
	for _, from := range slices.Sorted(maps.Keys(arrows)) {
		for _, to := range arrows[from] {
			fmt.Fprintf(&b, "    %s --> %s\n", node(from), node(to))
		}
	}
	return b.String()
}

// node is the name of a folder's box.
func node(folder string) string {
	return strings.NewReplacer("/", "_", ".", "root").Replace(folder)
}
