package leaf_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const module = "github.com/leaf-id/leaf"

// An importRule names the allowed imports of a folder's packages besides the standard library and
// each other. The first rule with a matching folder counts.
type importRule struct {
	folder string   // "." is the root package, "driver/*" any folder below driver
	ours   []string // folders of this module that may be reached, directly or not
	libs   []string // prefixes of the third-party packages that may be imported directly
}

// The library half of the module stays free of third-party code and points inwards;
// a driver adds its own client library and knows no other driver.
var importRules = []importRule{
	{folder: "."},
	{folder: "segment", ours: []string{".", "mask", "textid", "internal/filelock"}},
	{folder: "internal/failures"},
	{folder: "internal/filelock"},
	{folder: "worker", ours: []string{".", "internal/filelock"}},
	{folder: "mask", ours: []string{"."}},
	{folder: "textid", ours: []string{"."}},
	{folder: "snowflake", ours: []string{".", "worker", "internal/filelock"}},
	{folder: "internal/sqlstore", ours: driverMay},
	{folder: "driver/sqldb", ours: sqlMay},
	{folder: "internal/mysqlconn", ours: sqlMay, libs: []string{"github.com/go-sql-driver/mysql"}},
	{folder: "driver/mysql", ours: mysqlMay, libs: []string{"github.com/go-sql-driver/mysql", "golang.org/x/sync/"}},
	{folder: "driver/postgres", ours: sqlMay, libs: []string{"github.com/jackc/pgx/"}},
	{folder: "driver/sqlite", ours: sqlMay, libs: []string{"golang.org/x/sys/"}},
	{folder: "internal/hops", ours: []string{"."}},
	{folder: "internal/leafconn", ours: leafMay, libs: []string{
		"connectrpc.com/connect", "google.golang.org/genproto/googleapis/rpc/errdetails", "go.opentelemetry.io/otel/propagation"}},
	{folder: "client", ours: leafMay, libs: []string{"connectrpc.com/connect"}},
	{folder: "driver/kv", ours: driverMay},
	{folder: "driver/memory", ours: kvMay},
	{folder: "driver/drivertest/kvtest", ours: kvMay},
	{folder: "driver/drivertest/sqltest", ours: append([]string{"driver/drivertest", "driver/memory", "driver/sqldb", "internal/sqlstore"}, kvMay...)},
	{folder: "driver/drivertest", ours: append([]string{"driver/memory"}, kvMay...)},
	{folder: "driver/nats", ours: kvMay, libs: []string{"github.com/nats-io/nats.go"}},
	{folder: "driver/etcd", ours: kvMay, libs: []string{"go.etcd.io/etcd/", "go.uber.org/zap", "google.golang.org/grpc"}},
	{folder: "driver/redis", ours: kvMay, libs: []string{"github.com/redis/go-redis/"}},
	{folder: "driver/ticket", ours: mysqlMay},
	{folder: "driver/relay", ours: leafMay},
	{folder: "driver/zookeeper", ours: kvMay, libs: []string{"github.com/go-zookeeper/zk"}},
	{folder: "driver/*", ours: driverMay},
}

var (
	driverMay = []string{".", "mask", "segment", "textid", "worker", "internal/failures", "internal/filelock"}
	sqlMay    = append([]string{"driver/sqldb", "internal/sqlstore"}, driverMay...)
	mysqlMay  = append([]string{"internal/mysqlconn"}, sqlMay...)
	leafMay   = append([]string{"internal/leafconn", "internal/hops", "api/leaf/v1"}, driverMay...)
	kvMay     = append([]string{"driver/kv"}, driverMay...)
)

// A listed package is one as `go list -json` prints it; tests are not part of it.
type listed struct {
	ImportPath string
	Doc        string   // the first sentence of the package comment
	Imports    []string // directly
	Deps       []string // directly or not
}

// TestImports keeps the direction of the arrows. The go command does not know that
// it reads other folders: run it with -count=1.
func TestImports(t *testing.T) {
	packages := listPackages(t)
	if len(packages) < 2 {
		t.Fatalf("go list found %d packages: is the test run in the root folder?", len(packages))
	}
	for _, p := range packages {
		for _, v := range violations(p) {
			t.Errorf("%s %s", p.ImportPath, v)
		}
	}
}

// TestImportsRules shows that each rule forbids exactly its own cases.
func TestImportsRules(t *testing.T) {
	tests := []struct {
		folder string
		deps   []string
		want   []string
	}{
		{".", []string{"context", "vendor/golang.org/x/net/idna"}, nil},
		{".", []string{"golang.org/x/sync/errgroup"}, []string{"imports golang.org/x/sync/errgroup"}},
		{".", []string{module + "/segment"}, []string{"reaches segment"}},
		{"segment", []string{module}, nil},
		{"segment", []string{module + "/worker"}, []string{"reaches worker"}},
		{"segment", []string{"go.yaml.in/yaml/v3"}, []string{"imports go.yaml.in/yaml/v3"}},
		{"snowflake", []string{module, module + "/worker"}, nil},
		{"snowflake", []string{module + "/driver/mysql"}, []string{"reaches driver/mysql"}},
		{"driver/mysql", []string{module + "/segment", module + "/internal/sqlstore", "github.com/go-sql-driver/mysql"}, nil},
		{"driver/mysql", []string{"github.com/jackc/pgx/v5"}, []string{"imports github.com/jackc/pgx/v5"}},
		{"driver/mysql/inner", []string{module + "/driver/mysql"}, nil},
		{"driver/memory", []string{module + "/driver/sqlite"}, []string{"reaches driver/sqlite"}},
		{"driver/postgres", []string{module + "/driver/drivertest"}, []string{"reaches driver/drivertest"}},
		{"internal/sqlstore", []string{"github.com/go-sql-driver/mysql"}, []string{"imports github.com/go-sql-driver/mysql"}},
		{"driver/drivertest", []string{module + "/segment"}, nil},
		{"driver/drivertest", []string{"github.com/google/go-cmp/cmp"}, []string{"imports github.com/google/go-cmp/cmp"}},
		{"internal/server/httpapi", []string{module + "/segment", "connectrpc.com/connect"}, nil},
		{"internal/server/httpapi", []string{module + "/driver/memory"}, []string{"reaches driver/memory"}},
		{"internal/server", []string{module + "/internal/drivers"}, []string{"reaches internal/drivers"}},
		{"internal/drivers", []string{module + "/driver/memory", "modernc.org/sqlite"}, nil},
		{"cmd/leaf", []string{module + "/driver/drivertest"}, []string{"reaches driver/drivertest"}},
		{"cmd/leaf", []string{module + "/internal/testserver"}, []string{"reaches internal/testserver"}},
		{"cmd/leaf", []string{module + "/internal/drivers", "github.com/spf13/cobra"}, nil},
	}
	for _, tt := range tests {
		p := listed{ImportPath: strings.TrimSuffix(module+"/"+tt.folder, "/."), Imports: tt.deps, Deps: tt.deps}
		if diff := cmp.Diff(tt.want, violations(p)); diff != "" {
			t.Errorf("%s importing %q (-want +got):\n%s", tt.folder, tt.deps, diff)
		}
	}
}

// TestClientLibraries shows that an SQL driver compiles its own client library alone.
func TestClientLibraries(t *testing.T) {
	libraries := map[string]string{"mysql": "github.com/go-sql-driver/mysql", "postgres": "github.com/jackc/pgx/", "sqlite": "modernc.org/sqlite"}
	for _, p := range listPackages(t) {
		folder, _ := folderOf(p.ImportPath)
		name, ok := strings.CutPrefix(folder, "driver/")
		if _, isSQL := libraries[name]; !ok || !isSQL {
			continue
		}
		for owner, library := range libraries {
			if owner == name {
				continue
			}
			if i := slices.IndexFunc(p.Deps, func(dep string) bool { return strings.HasPrefix(dep, library) }); i >= 0 {
				t.Errorf("%s compiles %s", folder, p.Deps[i])
			}
		}
	}
}

func listPackages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Imports,Deps", "./...").Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	} else if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return packages
		} else if err != nil {
			t.Fatalf("decode the output of go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// TestImportsOfServer shows that the server's binary lacks the libraries of the load generator.
func TestImportsOfServer(t *testing.T) {
	for _, p := range listPackages(t) {
		folder, _ := folderOf(p.ImportPath)
		for _, dep := range p.Deps {
			if folder == "cmd/leaf" && (strings.Contains(dep, "/roaring") || strings.Contains(dep, "/hdrhistogram") || dep == module+"/internal/load") {
				t.Errorf("cmd/leaf compiles %s", dep)
			}
		}
	}
}

// violations reports what p imports against the rules.
func violations(p listed) []string {
	var found []string
	from, _ := folderOf(p.ImportPath)
	rule, ruled := ruleFor(from)
	for _, dep := range p.Deps {
		if to, ours := folderOf(dep); ours && to != from && !mayReach(from, to, rule, ruled) {
			found = append(found, "reaches "+to)
		}
	}
	for _, dep := range p.Imports {
		if _, ours := folderOf(dep); ruled && !ours && !standard(dep) && !rule.allows(dep) {
			found = append(found, "imports "+dep)
		}
	}
	return found
}

func ruleFor(folder string) (rule importRule, ok bool) {
	i := slices.IndexFunc(importRules, func(r importRule) bool { return within(folder, r.folder) })
	if i < 0 {
		return importRule{}, false
	}
	return importRules[i], true
}

func mayReach(from, to string, rule importRule, ruled bool) bool {
	switch {
	case within(to, "driver/drivertest"), to == "internal/testserver": // from tests only
		return within(from, "driver/drivertest") && within(to, "driver/drivertest")
	case within(from, "internal/server"):
		return !within(to, "driver/*") && !within(to, "internal/drivers")
	case !ruled || within(to, tree(from)):
		return true
	}
	return slices.ContainsFunc(rule.ours, func(folder string) bool { return within(to, folder) })
}

func (r importRule) allows(path string) bool {
	return slices.ContainsFunc(r.libs, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}

// tree returns the folder whose packages may import each other: one driver, or a
// folder of the root.
func tree(folder string) string {
	parts := strings.SplitN(folder, "/", 3)
	if parts[0] == "driver" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// within reports whether a folder is the one that a rule names, or below it.
func within(folder, rule string) bool {
	if above, ok := strings.CutSuffix(rule, "*"); ok {
		return strings.HasPrefix(folder, above)
	}
	return folder == rule || rule != "." && strings.HasPrefix(folder, rule+"/")
}

// folderOf returns the folder of a package of this module.
func folderOf(path string) (folder string, ours bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// standard reports whether path is of the standard library: its first element has
// no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
