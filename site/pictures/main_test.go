package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFilesAreWhatTheProgramDraws(t *testing.T) {
	for file, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", folder, file))
		if err != nil || string(got) != want {
			t.Errorf("docs/img/%s is not what the program draws (%v): 'make pictures' draws it again", file, err)
		}
	}
}
