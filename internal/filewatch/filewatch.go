// Package filewatch notices changed files by checking them from time to time. Unlike a notification
// of the kernel, that works on every file system, and for files behind symbolic links with a
// swapped target, as in Kubernetes.
package filewatch

import (
	"maps"
	"os"
)

// A Watcher remembers what files looked like. It is not safe for concurrent use.
type Watcher struct {
	known map[string]os.FileInfo // as they were when they last were reported, or first looked at
	last  map[string]os.FileInfo // as they were at the last look

	stable bool // the last look saw what the one before it did
}

// New returns a Watcher that reports no file as changed before it is.
func New(paths ...string) *Watcher {
	w := &Watcher{known: stat(paths)}
	w.last = maps.Clone(w.known)
	return w
}

// Changed checks the files of paths and returns those that have changed since their last return, or
// first check, and are stable: a file counts after two equal checks in a row, so that nobody reads
// an incomplete file.
func (w *Watcher) Changed(paths ...string) []string {
	now := stat(paths)
	var changed []string
	for _, path := range paths {
		before, seen := w.known[path]
		switch {
		case !seen:
			w.known[path] = now[path]
		case !same(before, now[path]) && same(w.last[path], now[path]):
			w.known[path] = now[path]
			changed = append(changed, path)
		}
	}
	w.stable = maps.EqualFunc(w.last, now, same)
	w.last = now
	return changed
}

// Stable reports whether the last two checks saw the same.
func (w *Watcher) Stable() bool { return w.stable }

func stat(paths []string) map[string]os.FileInfo {
	infos := make(map[string]os.FileInfo, len(paths))
	for _, path := range paths {
		infos[path], _ = os.Stat(path) // nil: invisible, which is a state too
	}
	return infos
}

// same reports whether two looks saw the same file with the same content, as far as can be told
// without reading it.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
