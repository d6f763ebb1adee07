package api_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf/api"
	"github.com/leaf-id/leaf/internal/testserver"
)

const grpcPage = `# gRPC

The services on the port of HTTP and on that of ` + "`--grpc`" + `, from the definitions in
[api/leaf/v1](../api/leaf/v1). [http-api.md](http-api.md#how-do-i-use-grpc) shows calls, and
[errors.md](errors.md) lists the codes. ` + "`make reference`" + ` writes this page from the definitions.
`

var (
	service = regexp.MustCompile(`(?ms)((?:^//[^\n]*\n)+)service (\w+) \{\n(.*?)^\}`)
	method  = regexp.MustCompile(`(?m)((?:^  //[^\n]*\n)+)  rpc (\w+)\((stream )?\w+\) returns \((stream )?\w+\);`)
)

// docs/grpc.md has the services and methods of the definitions, with their comments.
func TestReferenceOfGRPC(t *testing.T) {
	var page strings.Builder
	page.WriteString(grpcPage)
	for _, file := range []string{"leaf", "worker", "admin"} {
		text, err := api.Protos.ReadFile("leaf/v1/" + file + ".proto")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range service.FindAllStringSubmatch(string(text), -1) {
			fmt.Fprintf(&page, "\n## leaf.v1.%s\n\n%s\n| method | |\n|---|---|\n", s[2], prose(s[1]))
			methods := method.FindAllStringSubmatch(s[3], -1)
			if len(methods) != strings.Count(s[3], "  rpc ") {
				t.Errorf("%s: a method has no comment", s[2])
			}
			for _, m := range methods {
				fmt.Fprintf(&page, "| `%s`%s | %s |\n", m[2], streams(m[3]+m[4]), description(m[1], m[2]))
			}
		}
	}
	testserver.Page(t, "../docs/grpc.md", page.String())
}

func streams(text string) string {
	if text == "" {
		return ""
	}
	return " (stream)"
}

// description is the comment of a method without its name, in one line.
func description(comment, name string) string {
	text := strings.TrimPrefix(strings.Join(strings.Fields(prose(comment)), " "), name+" ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// prose takes the slashes off a comment.
func prose(comment string) string {
	return regexp.MustCompile(`(?m)^ *//[ ]?`).ReplaceAllString(comment, "")
}

const routesPage = `# HTTP routes

The routes on the port of HTTP, from the description that a server shows at ` + "`/openapi.yaml`" + `, which
also has each parameter and answer. A route with ` + "`GET`" + ` has ` + "`HEAD`" + ` too, which consumes no ID.
[http-api.md](http-api.md) shows calls. Connect and gRPC are in [grpc.md](grpc.md).
` + "`make reference`" + ` writes this page.

| route | | |
|---|---|---|
`

// docs/http-routes.md has the routes of the description.
func TestReferenceOfRoutes(t *testing.T) {
	var description struct {
		Paths yaml.Node
	}
	if err := yaml.Unmarshal([]byte(api.OpenAPI), &description); err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString(routesPage)
	nodes := description.Paths.Content
	for i := 0; i+1 < len(nodes); i += 2 {
		for _, r := range rows(t, nodes[i+1].Content) {
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", nodes[i].Value, strings.Join(r.methods, ", "), r.summary)
		}
	}
	testserver.Page(t, "../docs/http-routes.md", page.String())
}

type row struct {
	summary string
	methods []string
}

// rows joins methods with the same summary, and leaves out HEAD, which every route of GET has.
func rows(t *testing.T, methods []*yaml.Node) (all []row) {
	t.Helper()
	for i := 0; i+1 < len(methods); i += 2 {
		name := strings.ToUpper(methods[i].Value)
		var call struct{ Summary string }
		if err := methods[i+1].Decode(&call); err != nil || call.Summary == "" {
			t.Fatalf("%s: no summary, %v", name, err)
		}
		at := slices.IndexFunc(all, func(r row) bool { return r.summary == call.Summary })
		switch {
		case name == "HEAD":
		case at < 0:
			all = append(all, row{call.Summary, []string{name}})
		default:
			all[at].methods = append(all[at].methods, name)
		}
	}
	return all
}
