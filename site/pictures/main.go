// Command pictures draws the pictures of the concept pages into docs/img, in English, and into
// docs/img/zh, in Chinese: `make pictures`.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const folder = "../docs/img"

// A picture draws itself on a canvas.
type picture struct {
	name string
	draw func(*canvas)
}

var pictures = []picture{
	{"double-buffer", doubleBuffer},
	{"request", request},
	{"lease", lease},
	{"layouts", layouts},
	{"crash", crash},
	{"failover", failover},
	{"relays", relays},
	{"rolling-update", rollingUpdate},
}

// files returns the content of each file, by its path below folder.
func files() map[string]string {
	all := map[string]string{}
	for _, p := range pictures {
		for _, chinese := range []bool{false, true} {
			c := &canvas{chinese: chinese}
			p.draw(c)
			file := p.name + ".svg"
			if chinese {
				file = "zh/" + file
			}
			all[file] = c.svg()
		}
	}
	return all
}

func main() {
	for file, text := range files() {
		path := filepath.Join(folder, file)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "pictures:", err)
			os.Exit(1)
		}
	}
}
