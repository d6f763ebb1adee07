package saboteurs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lacking are the rules that shared code cannot break: SQL databases have no watch, and the registries
// that assign worker IDs are drivers of their own.
var lacking = map[string][]string{
	"registry watch/foreign write":    {"sql"},
	"registry watch/cancelled before": {"sql"},
	"registry assign":                 shared,
}

// Every rule of the conformance suites has faults that it must notice, in the code below the drivers
// with and without SQL, and every such fault is planted.
func TestRulesHaveFaults(t *testing.T) {
	all, err := readProofs(proofs)
	if err != nil {
		t.Fatal(err)
	}
	rules := suiteRules(t)
	if len(rules) < 80 {
		t.Fatalf("the suites have %d rules: are they read in the right way?", len(rules))
	}
	asked := planted(t)
	have := map[string]map[string]bool{}
	for _, p := range all {
		if !slices.Contains(rules, p.rule) {
			t.Errorf("proofs.txt: the suites have no rule %q", p.rule)
		}
		if !asked[p.fault] {
			t.Errorf("proofs.txt: %q is not planted", p.fault)
		}
		if have[p.rule] == nil {
			have[p.rule] = map[string]bool{}
		}
		have[p.rule][p.family()] = true
	}
	for _, rule := range rules {
		for _, family := range shared {
			if !have[rule][family] && !slices.Contains(lacking[rule], family) {
				t.Errorf("the rule %q has no fault in %s: plant one in faults/%[2]s.txt and name it in proofs.txt", rule, family)
			}
		}
	}
}

// suiteRules returns the names of all rules: the first strings of their literals and calls.
func suiteRules(t *testing.T) (names []string) {
	files, err := filepath.Glob("../../../driver/drivertest/rules_*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Type.Results == nil || !strings.HasSuffix(fn.Name.Name, "Rules") {
				continue
			}
			list, ok := fn.Type.Results.List[0].Type.(*ast.ArrayType)
			if !ok {
				continue
			}
			suite := strings.TrimSuffix(list.Elt.(*ast.Ident).Name, "Rule")
			for _, rule := range fn.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.CompositeLit).Elts {
				var first ast.Expr
				switch rule := rule.(type) {
				case *ast.CompositeLit:
					first = rule.Elts[0]
				case *ast.CallExpr:
					first = rule.Args[0]
				}
				text, err := strconv.Unquote(first.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, suite+" "+text)
			}
		}
	}
	return names
}
