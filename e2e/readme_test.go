package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// TestReadme follows README.md, line by line, in a fresh copy of the checkout, and compares the
// output with the comments. It changes the ports alone, to spare servers on 8080 or 3306.
func TestReadme(t *testing.T) {
	sh := newShell(t)
	for _, f := range fences(t, "README.md") {
		switch f.lang {
		case "sh":
			for _, c := range commands(t, f.body) {
				sh.run(c)
			}
		case "properties":
			sh.write("leaf.properties", f.body)
		case "go":
			sh.write("example/main.go", f.body)
			sh.run(command{line: "go run ./example", want: []string{"1"}})
		default:
			t.Errorf("a block marked %q: this test runs sh, properties and go", f.lang)
		}
	}
	sh.stopServer()
}

// guides are the pages whose commands a reader runs from top to bottom. On a page that starts no
// server one runs with an embedded store.
var guides = []string{"start", "production", "layouts", "segment-mode", "worker-leases", "operations", "forms",
	"masks", "security", "strict-order", "periods", "configuration", "snowflake-mode", "uid-mode"}

// TestAllBlocksRun sees to it that no page has commands that no test runs.
func TestAllBlocksRun(t *testing.T) {
	elsewhere := []string{"backup", "stores", "use-from"} // TestRecipes, clients/use-from
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, file := range pages {
		page := strings.TrimSuffix(filepath.Base(file), ".md")
		runs := strings.Contains(read(t, file), "\n```sh\n")
		if runs && !slices.Contains(guides, page) && !slices.Contains(elsewhere, page) {
			t.Errorf("docs/%s.md has blocks marked sh, which no test runs: name it in guides, or indent them", page)
		}
	}
}

func TestGuides(t *testing.T) {
	testserver.Long(t)
	sh := newShell(t)
	env := sh.env
	for _, page := range guides {
		blocks := fences(t, "docs/"+page+".md")
		sh.startOver(slices.Clip(env))
		if !slices.ContainsFunc(blocks, func(f fence) bool { return f.lang == "sh" && strings.Contains(f.body, "leaf serve") }) {
			sh.run(command{line: "leaf serve"})
		}
		for _, f := range blocks {
			switch {
			case f.lang == "yaml" && (page == "production" || page == "masks"):
				sh.write("leaf.yaml", f.body)
			case f.lang == "sh":
				for _, c := range commands(t, f.body) {
					sh.run(c)
				}
			}
		}
	}
	sh.stopServer()
}

func TestReadmeInChineseHasTheSameBlocks(t *testing.T) {
	english, chinese := fences(t, "README.md"), fences(t, "README_CN.md")
	if len(english) != len(chinese) {
		t.Fatalf("%d blocks in README.md, %d in README_CN.md", len(english), len(chinese))
	}
	for i, f := range english {
		if chinese[i] != f {
			t.Errorf("block %d differs:\n%s\nin Chinese:\n%s", i+1, f.body, chinese[i].body)
		}
	}
}

// A fence is a marked block of a document.
type fence struct{ lang, body string }

func fences(t *testing.T, name string) []fence {
	t.Helper()
	var found []fence
	block := regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	for _, m := range block.FindAllStringSubmatch(read(t, filepath.Join("..", name)), -1) {
		found = append(found, fence{lang: m[1], body: m[2]})
	}
	if len(found) == 0 {
		t.Fatalf("%s: no blocks found", name)
	}
	return found
}

// A command is a line of a block, with its expected output in the comments below it. Without
// comments any output will do.
type command struct {
	line string
	want []string
}

func commands(t *testing.T, body string) []command {
	t.Helper()
	var list []command
	for line := range strings.Lines(body) {
		line = strings.TrimSpace(line)
		output, comment := strings.CutPrefix(line, "# ")
		switch {
		case line == "":
		case !comment:
			list = append(list, command{line: line})
		case len(list) == 0:
			t.Fatalf("a block begins with the output %q", line)
		default:
			last := &list[len(list)-1]
			last.want = append(last.want, output)
		}
	}
	return list
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
