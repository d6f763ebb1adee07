package leaf_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// ofTheBinary matches what only the binary knows: its commands and its flags.
var ofTheBinary = regexp.MustCompile(`\bleaf (init|tag|worker|serve|status|config|next|decode)\b|` +
	`--(store|workers|server|listen|data|config|timeout|resize|retired|lost|jump|yes|force|max-id|step|by)(?:[^-\w]|$)`)

// TestLibrariesNameNoCommand keeps advice about commands and flags in internal/hint: who
// uses the library alone has neither.
func TestLibrariesNameNoCommand(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"segment", "worker", "snowflake", "driver", "internal/sqlstore"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			files = append(files, path)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := 0
	for _, file := range files {
		if filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		read++
		for where, text := range namesOfTheBinary(t, file, nil) {
			t.Errorf("%s: %q: return an error that wraps a sentinel, and put the advice into internal/hint", where, text)
		}
	}
	if read < 50 {
		t.Errorf("only %d files were read", read)
	}
}

func TestNamesOfTheBinary(t *testing.T) {
	for literal, want := range map[string]int{
		`"create it with leaf init --store URL"`: 1, `"give it as --workers"`: 1, "`see 'leaf tag list'`": 1,
		`"grant-permission ROLE --prefix=true"`: 0, `"the table leaf_worker"`: 0, `"a leaf worker"`: 1, `"leaf statuses"`: 0,
	} {
		if got := namesOfTheBinary(t, "x.go", "package x\n\nvar _ = "+literal+" // leaf init"); len(got) != want {
			t.Errorf("%s: %v", literal, got)
		}
	}
}

// namesOfTheBinary returns the string literals of a file that name a command or a flag, by
// their places.
func namesOfTheBinary(t *testing.T, file string, src any) map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	ast.Inspect(parsed, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(lit.Value); err == nil && ofTheBinary.MatchString(text) {
			found[fset.Position(lit.Pos()).String()] = text
		}
		return true
	})
	return found
}
