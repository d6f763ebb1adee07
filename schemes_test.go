package leaf_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/issuer"
)

// A file that names three schemes holds a list of them, and the list belongs to the table of
// package issuer. The server's assembly gives each scheme its source.
func TestSchemesAreListedOnce(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(path, "e2e") || strings.HasPrefix(path, "bench") || path == "api" || path == "internal/issuer"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(source, []byte("issuer")) && !bytes.Contains(source, []byte(`"snowflake"`)) {
			return err
		}
		if named := schemesIn(t, path, source); len(named) > 2 && path != filepath.FromSlash("internal/server/server.go") {
			t.Errorf("%s names %d schemes: take them from issuer.Schemes", path, len(named))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// schemesIn returns the schemes that the code of a file names, as a constant or as a string.
func schemesIn(t *testing.T, path string, source []byte) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, s := range issuer.Schemes {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "issuer" && strings.EqualFold(n.Sel.Name, s.Name) {
					named[s.Name] = true
				}
			case *ast.BasicLit:
				if n.Value == `"`+s.Name+`"` || strings.Contains(n.Value, "/"+s.Name+"/") {
					named[s.Name] = true
				}
			}
		}
		return true
	})
	return named
}
