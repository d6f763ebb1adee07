package server_test

import (
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// protocolNames are the words that only the table of front ends has, and its packages.
var (
	protocolNames    = regexp.MustCompile(`(?i)http|grpc|redis|\bconnect\b|\bresp\b`)
	protocolPackages = regexp.MustCompile(`/internal/server/(web|browser|fastlane|httpapi|respapi|rpcapi|v1api)$|^net/http|grpc|connectrpc`)
)

// A new front end is a folder and a row of the table: no other file of this package names a
// protocol.
func TestOneTableOfFrontEnds(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || file == "frontends.go" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range protocolsIn(t, file, text) {
			t.Errorf("%s names %s: move it to the folder of a front end, or into the table in frontends.go", file, found)
		}
	}
	if n := len(protocolsIn(t, "x.go", []byte("package x\n\nimport \"net/http\"\n\nvar redis = \"over HTTP\" // and gRPC\n"))); n != 3 {
		t.Errorf("%d names in a file with 3", n)
	}
}

// protocolsIn returns the names in a file, without its comments.
func protocolsIn(t *testing.T, name string, text []byte) (found []string) {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	imports := make(map[string]bool)
	for _, spec := range parsed.Imports {
		imports[spec.Path.Value] = true
		if path, _ := strconv.Unquote(spec.Path.Value); protocolPackages.MatchString(path) {
			found = append(found, "package "+path)
		}
	}
	var s scanner.Scanner
	s.Init(files.AddFile(name, -1, len(text)), text, nil, 0)
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return found
		}
		if (tok == token.IDENT || tok == token.STRING) && !imports[lit] && protocolNames.MatchString(lit) {
			found = append(found, lit)
		}
	}
}
