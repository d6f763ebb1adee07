// Package saboteurs plants faults in a copy of the product's code, so that the lab can show that it
// notices each of them. The code itself knows nothing of them.
package saboteurs

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	//go:embed faults
	files embed.FS

	//go:embed testdata
	added embed.FS // files that the copy has and the product has not
)

// faults returns the texts of all faults.
func faults() string {
	var all strings.Builder
	names, err := fs.Glob(files, "faults/*.txt")
	for _, name := range names {
		text, failed := files.ReadFile(name)
		err = cmp.Or(err, failed)
		all.Write(append(text, '\n'))
	}
	if err != nil {
		panic(err) // the program holds them
	}
	return all.String()
}

const importLine = `; import sabotage "github.com/leaf-id/leaf"`

var packageClause = regexp.MustCompile(`(?m)^package \w+$`)

// Overlay writes the copy to dir and returns the file for the flag -overlay of the go command. Root
// is the folder of the product's module. Every fault is in the copy; the environment variable
// LEAFLAB_SABOTAGE names the one that a process is to have.
func Overlay(root, dir string) (string, error) {
	files, err := sabotaged(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for name, text := range files {
		copied := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = copied
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

// Plant writes all faults into the module of the product in the folder root.
func Plant(root string) error {
	files, err := sabotaged(root)
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		err = cmp.Or(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
	}
	return err
}

// sabotaged returns the files of the copy that differ from those of root, by name.
func sabotaged(root string) (files map[string]string, err error) {
	files, err = plant(root, faults())
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(added, "testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := added.ReadFile(path)
		files[strings.TrimPrefix(path, "testdata/")] = string(text)
		return err
	})
	return files, err
}

// plant returns the files of root with the faults in them, by name.
func plant(root, faults string) (files map[string]string, err error) {
	files = make(map[string]string)
	for _, h := range hunks(faults) {
		text, ok := files[h.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(h.file)))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", h.fault, err)
			}
			text = string(read)
		}
		if n := strings.Count("\n"+text, "\n"+h.old); n != 1 {
			return nil, fmt.Errorf("%s: %w: %s has these lines %d times, not once:\n%s", h.fault, errStale, h.file, n, h.old)
		}
		files[h.file] = strings.TrimPrefix(strings.Replace("\n"+text, "\n"+h.old, "\n"+h.new, 1), "\n")
	}
	for name, text := range files {
		if at := packageClause.FindStringIndex(text); at != nil && strings.Contains(text, "sabotage.") {
			files[name] = text[:at[1]] + importLine + text[at[1]:]
		}
	}
	return files, nil
}

// errStale says that a fault does not fit the code any more.
var errStale = errors.New("the fault does not fit the code any more")

// A hunk is one place that a fault changes.
type hunk struct {
	fault, file string
	old, new    string // whole lines
}

// hunks reads the faults. A block names one, or several, the file, and the lines: those with a minus or
// a blank before them are in the file once, and in that order; the copy has those with a plus or a
// blank. sabotage.Broken reports whether a fault is switched on.
func hunks(text string) (all []hunk) {
	fault := ""
	for line := range strings.Lines(text) {
		last := len(all) - 1
		switch rest := line[1:]; {
		case strings.HasPrefix(line, "# "):
			fault = strings.TrimSpace(rest)
		case strings.HasPrefix(line, "--- "):
			all = append(all, hunk{fault: fault, file: strings.TrimSpace(line[4:])})
		case fault == "" || rest == "": // the lines between faults
		case line[0] == '-':
			all[last].old += rest
		case line[0] == '+':
			all[last].new += rest
		default:
			all[last].old, all[last].new = all[last].old+rest, all[last].new+rest
		}
	}
	return all
}
