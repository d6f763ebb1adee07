package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A fault is one change of the code. [mutate] writes it next to the original.
type fault struct {
	key   string // file, function, code, change: no line, so that it stays as code around it moves
	line  int
	file  string // an absolute path
	edits func(n int) []edit
}

// An edit replaces a part of a file. An insertion belongs to the node from start to end: those of
// outer nodes enclose those of inner ones.
type edit struct {
	at, length int
	start, end int
	text       string
}

// A planter finds the faults of one file.
type planter struct {
	root  string
	fset  *token.FileSet
	info  *types.Info
	name  string // of the file
	text  string
	base  int
	where string // the function
	loops map[ast.Expr]bool
	found []fault
}

// candidates returns all faults that can be planted in a package, in the order of the code.
func candidates(root string, p *packages.Package, read func(name string) (string, error)) (all []fault, err error) {
	for _, file := range p.Syntax {
		name := p.Fset.Position(file.FileStart).Filename
		text, err := read(name)
		if err != nil {
			return nil, err
		}
		f := &planter{root: root, fset: p.Fset, info: p.TypesInfo, name: name, text: text, base: p.Fset.File(file.FileStart).Base(), loops: map[ast.Expr]bool{}}
		for _, d := range file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				f.function(fn)
			}
		}
		all = append(all, f.found...)
	}
	seen := map[string]int{}
	for i := range all {
		seen[all[i].key]++
		if n := seen[all[i].key]; n > 1 {
			all[i].key += fmt.Sprintf(" (%d)", n)
		}
	}
	return all, nil
}

func (p *planter) offset(at token.Pos) int { return int(at) - p.base }

func (p *planter) source(n ast.Node) string { return p.text[p.offset(n.Pos()):p.offset(n.End())] }

// add adds a fault of a node.
func (p *planter) add(n ast.Node, change string, edits func(n int) []edit) {
	code := strings.Join(strings.Fields(p.source(n)), " ")
	if len(code) > 90 {
		code = code[:60] + " … " + code[len(code)-25:]
	}
	rel, err := filepath.Rel(p.root, p.name)
	if err != nil {
		rel = p.name
	}
	p.found = append(p.found, fault{
		key:  fmt.Sprintf("%s %s: %s: %s", filepath.ToSlash(rel), p.where, change, code),
		line: p.fset.Position(n.Pos()).Line, file: p.name, edits: edits,
	})
}

// wrap adds a fault that encloses a node; %d in the texts is its number.
func (p *planter) wrap(n ast.Node, change, before, after string) {
	p.add(n, change, func(id int) []edit { return p.around(n, number(before, id), number(after, id)) })
}

func number(text string, id int) string { return strings.ReplaceAll(text, "%d", fmt.Sprint(id)) }

func (p *planter) around(n ast.Node, before, after string) []edit {
	start, end := p.offset(n.Pos()), p.offset(n.End())
	return []edit{{start, 0, start, end, before}, {end, 0, start, end, after}}
}

func (p *planter) function(fn *ast.FuncDecl) {
	p.where = fn.Name.Name
	if fn.Recv != nil {
		p.where = strings.Trim(p.source(fn.Recv.List[0].Type), "*") + "." + p.where
	}
	if len(fn.Body.List) > 0 {
		p.emptied(fn)
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.ArrayType:
			return false
		case *ast.BlockStmt:
			p.statements(n.List)
		case *ast.CaseClause:
			p.statements(n.Body)
		case *ast.CommClause:
			p.statements(n.Body)
		case *ast.IfStmt:
			p.condition(n.Cond)
		case *ast.ForStmt:
			p.loops[n.Cond] = true
			p.condition(n.Cond)
		case *ast.SwitchStmt:
			p.cases(n)
		case *ast.ReturnStmt:
			p.results(n)
		case ast.Expr:
			p.expression(n)
		}
		return true
	})
}

// emptied has a function do nothing, and return zeros.
func (p *planter) emptied(fn *ast.FuncDecl) {
	var zeros []string
	if fn.Type.Results != nil {
		for _, r := range fn.Type.Results.List {
			for range max(1, len(r.Names)) {
				zeros = append(zeros, "*new("+p.source(r.Type)+")")
			}
		}
	}
	at := p.offset(fn.Body.Lbrace) + 1
	p.add(fn.Name, "does nothing", func(id int) []edit {
		return []edit{{at, 0, at, at, fmt.Sprintf(" if mutant.On(%d) { return %s };", id, strings.Join(zeros, ", "))}}
	})
}

// statements leaves out each one that can be.
func (p *planter) statements(list []ast.Stmt) {
	for _, s := range list {
		if p.removable(s) {
			p.wrap(s, "removed", "if !mutant.On(%d) { ", " }")
		}
		if a, ok := s.(*ast.AssignStmt); ok && (a.Tok == token.ADD_ASSIGN || a.Tok == token.SUB_ASSIGN) && p.integer(a.Rhs[0]) {
			other := map[token.Token]string{token.ADD_ASSIGN: " -= ", token.SUB_ASSIGN: " += "}[a.Tok]
			p.wrap(s, "becomes"+other[:3], "if mutant.On(%d) { "+p.source(a.Lhs[0])+other+p.source(a.Rhs[0])+" } else { ", " }")
		}
	}
}

func (p *planter) removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt:
		return true
	case *ast.DeferStmt:
		return !p.dull(s.Call)
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return !ok || !p.dull(call)
	case *ast.AssignStmt:
		if id, ok := s.Lhs[0].(*ast.Ident); ok && id.Name == "_" && len(s.Lhs) == 1 {
			return false
		}
		return s.Tok != token.DEFINE
	}
	return false
}

// dull reports calls that mutants keep: a panic ends a function, a missing Unlock hangs, a missing
// Lock belongs to the race detector, and log lines promise nothing.
func (p *planter) dull(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		if t := p.info.TypeOf(f.X); t != nil && strings.HasSuffix(t.String(), "slog.Logger") {
			return true
		}
		return slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, f.Sel.Name)
	}
	return false
}

// condition takes an expression, or each operand of its && and ||, for true and for false.
func (p *planter) condition(e ast.Expr) {
	if e == nil || p.constant(e) {
		return
	}
	if b, ok := ast.Unparen(e).(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		return // its operands are conditions
	}
	p.operand(e, p.loops[e])
}

func (p *planter) operand(e ast.Expr, loop bool) {
	if p.constant(e) {
		return
	}
	p.wrap(e, "is false", "(!mutant.On(%d) && (", "))")
	if !loop { // which would not end
		p.wrap(e, "is true", "(mutant.On(%d) || (", "))")
	}
}

func (p *planter) cases(s *ast.SwitchStmt) {
	if s.Tag != nil {
		return
	}
	for _, c := range s.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			p.condition(e)
		}
	}
}

// results drops errors, and replaces computed boolean results by true and by false.
func (p *planter) results(r *ast.ReturnStmt) {
	for _, e := range r.Results {
		t := p.info.TypeOf(e)
		switch b, basic := t.(*types.Basic); {
		case t == nil || p.info.Types[e].IsNil():
		case types.Identical(t, types.Universe.Lookup("error").Type()):
			p.wrap(e, "no error", "mutant.Err(%d, ", ")")
		case basic && b.Info()&types.IsBoolean != 0:
			p.condition(e)
		}
	}
}

func (p *planter) constant(e ast.Expr) bool { return p.info.Types[e].Value != nil }

func (p *planter) integer(e ast.Expr) bool {
	t := p.info.TypeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// arithmetic names the function of package mutant for an operator, and what becomes of it.
var arithmetic = map[token.Token][2]string{
	token.ADD: {"Add", "-"}, token.SUB: {"Sub", "+"}, token.MUL: {"Mul", "/"}, token.QUO: {"Div", "*"},
	token.AND: {"And", "|"}, token.OR: {"Or", "&"}, token.SHL: {"Shl", ">>"}, token.SHR: {"Shr", "<<"},
}

func (p *planter) expression(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		p.binary(e)
	case *ast.Ident:
		if (e.Name == "true" || e.Name == "false") && p.info.Uses[e] == types.Universe.Lookup(e.Name) {
			p.wrap(e, "negated", "(", " != mutant.On(%d))")
		}
	case *ast.CallExpr:
		p.extreme(e)
	case *ast.CompositeLit:
		p.fields(e)
	}
}

func (p *planter) binary(e *ast.BinaryExpr) {
	if p.constant(e) {
		return
	}
	x, y := p.source(e.X), p.source(e.Y)
	switch e.Op {
	case token.LAND, token.LOR:
		for _, o := range []ast.Expr{e.X, e.Y} {
			if b, ok := ast.Unparen(o).(*ast.BinaryExpr); !ok || b.Op != token.LAND && b.Op != token.LOR {
				p.operand(o, false)
			}
		}
	case token.LSS, token.GTR:
		p.wrap(e, "or equal", "(", " || mutant.On(%d) && "+x+" == "+y+")")
	case token.LEQ, token.GEQ:
		p.wrap(e, "not equal", "(", " && !(mutant.On(%d) && "+x+" == "+y+"))")
	default:
		other, ok := arithmetic[e.Op]
		if !ok || !p.integer(e) || p.info.TypeOf(e).(interface{ String() string }).String() == "untyped int" {
			return
		}
		at := p.offset(e.OpPos)
		p.add(e, "becomes "+other[1], func(id int) []edit {
			return append(p.around(e, fmt.Sprintf("mutant.%s(%d, ", other[0], id), ")"), edit{at, len(e.Op.String()), at, at, ","})
		})
	}
}

// extreme takes the largest for the least.
func (p *planter) extreme(call *ast.CallExpr) {
	id, ok := call.Fun.(*ast.Ident)
	if !ok || len(call.Args) != 2 || p.constant(call) || id.Name != "min" && id.Name != "max" {
		return
	}
	if _, ok := p.info.Uses[id].(*types.Builtin); !ok {
		return
	}
	at, first := p.offset(id.Pos()), p.offset(call.Args[0].Pos())
	name, other := "Min", "becomes max"
	if id.Name == "max" {
		name, other = "Max", "becomes min"
	}
	p.add(call, other, func(n int) []edit {
		return []edit{{at, len(id.Name), at, at, "mutant." + name}, {first, 0, first, p.offset(call.End()), fmt.Sprintf("%d, ", n)}}
	})
}

// fields leaves out each field of a struct.
func (p *planter) fields(lit *ast.CompositeLit) {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok || p.info.Types[kv.Value].IsNil() || p.constant(kv.Value) {
			continue
		}
		if _, ok := p.info.TypeOf(lit).Underlying().(*types.Struct); !ok {
			continue
		}
		if _, ok := kv.Value.(*ast.FuncLit); ok {
			continue
		}
		p.wrap(kv.Value, "zero for "+p.source(kv.Key), "mutant.Zero(%d, ", ")")
	}
}
