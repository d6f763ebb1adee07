package datadir

import (
	"fmt"

	"github.com/leaf-id/leaf/segment"
)

var _ segment.Memory = (*Marks)(nil)

// Marks is the [segment.Memory] of one store, kept in the data directory.
//
// Each slot has a file of its own to which its process appends; in each file the
// last word on a counter holds, which may be the lower one, since a clean stop
// gives IDs back. Recall reads the files of all slots, as they then are, and
// answers with the highest of their marks: whoever issued IDs up to there, they are
// in use.
//
// Forget appends to every file that knows the tag. So it needs no clock to be later
// than what it voids, and whatever a running process still writes about the tag
// afterwards counts again.
//
// A mark is with the operating system when Remember returns: it survives the death
// of the process, kill -9 included. It is not synced to the disk before Close, so
// that a power cut may lose the latest. A regression of the store in the same
// power cut is then not noticed.
type Marks struct {
	store string
	log   *markLog
}

// Recall returns what all processes on the directory have remembered of tag, by
// source. What cannot be read is logged and counts as not known.
//
// It belongs before the first Advance of the tag: what another process remembers
// after that may be of a range that it was dealt later, and then says nothing about
// the store.
func (m *Marks) Recall(tag string) map[string]segment.Mark {
	return m.log.recall(key{m.store, tag})
}

// Tags reports of how many tags something is remembered.
func (m *Marks) Tags() int { return m.log.tags(m.store) }

// Remember replaces what this process knows of a source of tag. On an error,
// such as that of a full disk, what was known before stays.
func (m *Marks) Remember(tag, source string, mark segment.Mark) error {
	if mark.High < 0 {
		return fmt.Errorf("remember tag %q: its mark %d is negative", tag, mark.High)
	}
	if err := m.log.add(record{key: key{m.store, tag}, source: source, mark: mark}); err != nil {
		return fmt.Errorf("remember tag %q: %w", tag, err)
	}
	return nil
}

// Forget drops what any process on the directory has remembered of tag so far.
func (m *Marks) Forget(tag string) error {
	if err := m.log.forget(key{m.store, tag}); err != nil {
		return fmt.Errorf("forget tag %q: %w", tag, err)
	}
	return nil
}
