package leaf_test

import (
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// constructorForm is the form of New, for a client of the caller, and of Open, for addresses.
var constructorForm = regexp.MustCompile(`^func (New|Open)\((\w+ [^,]+, opts \*(sqldb\.)?Options)?\) (\(\*((sql|kv)[a-z]*\.)?DB, error\)|\*DB)$`)

// TestDriversLookAlike keeps one form of constructor, and a package comment that shows the use of
// the DB behind it.
func TestDriversLookAlike(t *testing.T) {
	folders, err := filepath.Glob("driver/*")
	if err != nil || len(folders) < 10 {
		t.Fatal(folders, err)
	}
	for _, folder := range folders {
		name := filepath.Base(folder)
		if slices.Contains([]string{"kv", "sqldb", "drivertest"}, name) {
			continue
		}
		p, constructors := driverDoc(t, folder)
		for _, c := range constructors {
			if !constructorForm.MatchString(c) {
				t.Errorf("%s: %s has another form than %v", folder, c, constructorForm)
			}
		}
		uses := []string{"db, err := " + name + ".", "db.Init", "db.Store()", "db.Registry()", "db.Close()"}
		switch name {
		case "memory":
			uses[0] = "db := memory.New() "
		case "ticket":
			uses[3] = "" // it keeps no worker IDs
		}
		for _, use := range uses {
			if !strings.Contains(p.Doc, use) {
				t.Errorf("%s: the package comment does not show %s", folder, use)
			}
		}
		if len(constructors) == 0 {
			t.Errorf("%s has neither New nor Open", folder)
		}
	}
}

// driverDoc returns the documentation of a package, and its New and Open.
func driverDoc(t *testing.T, folder string) (*doc.Package, []string) {
	t.Helper()
	fset, files := token.NewFileSet(), []*ast.File(nil)
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	p, err := doc.NewFromFiles(fset, files, module+"/"+folder)
	if err != nil {
		t.Fatal(err)
	}
	all := p.Funcs
	for _, kind := range p.Types {
		all = append(all, kind.Funcs...)
	}
	var constructors []string
	for _, f := range all {
		if f.Name == "New" || f.Name == "Open" {
			f.Decl.Doc, f.Decl.Body = nil, nil
			var text strings.Builder
			if err := format.Node(&text, fset, f.Decl); err != nil {
				t.Fatal(err)
			}
			constructors = append(constructors, text.String())
		}
	}
	return p, constructors
}
