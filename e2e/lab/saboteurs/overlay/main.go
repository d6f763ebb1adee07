// Overlay prints the file for the flag -overlay of the go command that plants the lab's faults:
//
//	go test -tags leafsabotage -overlay "$(go run ./lab/saboteurs/overlay)" ./lab/sim
//
// It is run in the folder e2e. With -plant it writes the faults into the tree, which must be a copy, for tools
// that know no overlays.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/leaf-id/leaf/e2e/lab/saboteurs"
)

func main() {
	plant := flag.Bool("plant", false, "write the faults into this tree")
	flag.Parse()
	root, err := filepath.Abs("..")
	if err != nil {
		log.Fatal(err)
	}
	if *plant {
		if err := saboteurs.Plant(root); err != nil {
			log.Fatal(err)
		}
		return
	}
	dir, err := os.MkdirTemp("", "leaf-saboteurs-")
	if err != nil {
		log.Fatal(err)
	}
	path, err := saboteurs.Overlay(root, dir)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(path)
}
