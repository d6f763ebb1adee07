// Overlay prints the file for the flag -overlay of the go command that plants the lab's faults:
//
//	go test -tags leafsabotage -overlay "$(go run ./lab/saboteurs/overlay)" ./lab/sim
//
// It is run in the folder e2e.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/leaf-id/leaf/e2e/lab/saboteurs"
)

func main() {
	root, err := filepath.Abs("..")
	if err != nil {
		log.Fatal(err)
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
