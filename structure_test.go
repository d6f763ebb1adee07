package leaf_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

const structureFile = "docs/structure.md"

// structureText comes before the pictures.
const structureText = `# The structure of the code

Each box of the first picture is a group of folders. An arrow is an import; one that another path
implies is left out. Below, each group has a picture of its own folders and the first sentence of
each package comment. ` + "`make structure`" + ` draws the pictures from the imports, and a test compares
them. The table in ` + "`imports_test.go`" + ` lists the permitted imports.

`

// A room is a group of folders.
type room struct {
	title    string
	patterns []string // of folders, as in imports_test.go
}

// rooms lists the groups, at most twelve. A folder belongs to the first one with a matching pattern.
var rooms = []room{
	{"commands", []string{"cmd/*", "internal/cli", "internal/load"}},
	{"assembly of a server", []string{"internal/filewatch", "internal/footprint", "internal/sdnotify", "internal/server"}},
	{"front ends", []string{"internal/server/*"}},
	{"table of URLs", []string{"internal/cluster", "internal/drivers", "internal/foreign"}},
	{"backends", []string{"internal/backend", "internal/datadir"}},
	{"configuration", []string{"internal/config", "internal/edit"}},
	{"issuer and health", []string{"internal/issuer", "internal/health", "internal/hint", "internal/telemetry"}},
	{"SQL drivers", []string{"driver/mysql", "driver/postgres", "driver/sqldb", "driver/sqlite", "driver/ticket", "internal/mysqlconn", "internal/sqlstore"}},
	{"clients of servers", []string{"client", "driver/relay", "internal/hops", "internal/leafconn"}},
	{"key-value drivers", []string{"driver/*"}},
	{"protocols", []string{"api", "api/*"}},
	{"library", []string{".", "internal/failures", "internal/filelock", "mask", "segment", "snowflake", "textid", "worker"}},
}

// TestStructure compares the pictures in the documentation with the imports. The go command
// does not know that it reads other folders: run it with -count=1.
func TestStructure(t *testing.T) {
	if len(rooms) > 12 {
		t.Errorf("%d rooms: nobody keeps more than 12 in mind", len(rooms))
	}
	testserver.Page(t, structureFile, structureOf(t, listPackages(t)))
}

func structureOf(t *testing.T, packages []listed) string {
	folders, groups := graph{}, graph{}
	docs := map[string]string{}
	for _, p := range packages {
		from, _ := folderOf(p.ImportPath)
		if testOnly(from) {
			continue
		}
		if findRoom(from) == "" {
			t.Fatalf("the folder %s belongs to no group: add it to rooms", from)
		}
		docs[from] = p.Doc
		folders.box(from)
		groups.box(findRoom(from))
		for _, path := range p.Imports {
			to, ours := folderOf(path)
			if !ours || testOnly(to) {
				continue
			}
			folders.arrow(from, to)
			groups.arrow(findRoom(from), findRoom(to))
		}
	}
	for from := range groups {
		if groups.reaches(from, from) {
			t.Errorf("the group %q imports itself through others: %q", from, groups[from])
		}
	}
	var b strings.Builder
	b.WriteString(structureText + groups.picture(titles()))
	for _, r := range rooms {
		r.write(&b, folders, docs)
	}
	return b.String()
}

// write adds the section of a room.
func (r room) write(b *strings.Builder, all graph, docs map[string]string) {
	elsewhere := func(folder string) bool { return findRoom(folder) != r.title }
	inside := graph{}
	for folder, to := range all {
		if !elsewhere(folder) {
			inside[folder] = slices.DeleteFunc(slices.Clone(to), elsewhere)
		}
	}
	names := inside.names()
	fmt.Fprintf(b, "\n## %s%s\n\n", strings.ToUpper(r.title[:1]), r.title[1:])
	if slices.ContainsFunc(names, func(name string) bool { return len(inside[name]) > 0 }) {
		b.WriteString(inside.picture(names) + "\n")
	}
	for _, name := range names {
		b.WriteString(item(fmt.Sprintf("`%s` %s", label(name), summary(docs[name]))))
	}
}

// item writes text as an item of a list, in lines of at most 100 characters.
func item(text string) string {
	out, length := "*", 1
	for word := range strings.FieldsSeq(text) {
		if length+1+len(word) > 100 {
			out, length = out+"\n ", 1
		}
		out, length = out+" "+word, length+1+len(word)
	}
	return out + "\n"
}

// findRoom returns the title of a folder's room; "" if it has no room.
func findRoom(folder string) string {
	for _, r := range rooms {
		if slices.ContainsFunc(r.patterns, func(pattern string) bool {
			return folder == pattern || strings.HasSuffix(pattern, "*") && within(folder, pattern)
		}) {
			return r.title
		}
	}
	return ""
}

func titles() (all []string) {
	for _, r := range rooms {
		all = append(all, r.title)
	}
	return all
}

// testOnly reports whether a folder has nothing but tests and their helpers.
func testOnly(folder string) bool {
	return within(folder, "driver/drivertest") || within(folder, "internal/testserver") || folder == "worker/model" || within(folder, "clients")
}

// summary is the first sentence of a package comment without the name of the package.
func summary(doc string) string {
	words := strings.SplitN(strings.NewReplacer("[", "", "]", "").Replace(doc), " ", 3)
	if len(words) < 3 {
		return "has generated code."
	}
	return words[2]
}
