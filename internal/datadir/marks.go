package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/segment"
)

// Earlier releases kept what they knew of all counters in one file for each slot, marks-N. Its
// lines are
//
//	leaf-marks 1 WORD
//	mark "STORE" "TAG" "SOURCE" HIGH "SERVER"
//	forget "STORE" "TAG"
//
// and the last word on a counter holds.
const marksHeader = "leaf-marks 1 "

// upgrade takes over the files of earlier releases whose processes have ended, and removes each
// after its content is on the disk. An unreadable file stays.
func (d *Dir) upgrade(logger *slog.Logger) error {
	found, err := filepath.Glob(filepath.Join(d.path, "marks-*"))
	if err != nil || len(found) == 0 {
		return err
	}
	lock, err := d.lockMemories()
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, path := range found {
		slot, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "marks-"))
		if err == nil {
			err = d.upgradeSlot(path, slot)
		}
		if err != nil {
			logger.Warn("an earlier release's memory of counters is not taken over", "path", path, "err", err)
			continue
		}
		logger.Info("took over an earlier release's memory of counters, and removed its file: that release starts without this memory if you go back to it",
			"path", path)
	}
	return nil
}

func (d *Dir) upgradeSlot(path string, slot int) error {
	if slot != d.slot {
		lock, err := filelock.OpenLocal(filepath.Join(d.path, fmt.Sprintf("worker-%d", slot)))
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	stores, err := readMarks(path)
	if err != nil {
		return err
	}
	for store, tags := range stores {
		if err := d.remember(store, tags); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// A tagMarks is the marks of tags, by source.
type tagMarks map[string]map[string]segment.Mark

// remember writes marks of a store through to the disk. Where a higher one is known it stays.
func (d *Dir) remember(store string, tags tagMarks) error {
	m, err := segment.OpenMemory(filepath.Join(d.path, d.counters(store)), nil)
	if err != nil {
		return err
	}
	for tag, sources := range tags {
		known := m.Recall(tag)
		for source, mark := range sources {
			if old, ok := known[source]; ok && old.High >= mark.High {
				continue
			}
			if err := m.Remember(tag, source, mark); err != nil {
				return errors.Join(err, m.Close())
			}
		}
	}
	return m.Close()
}

// readMarks returns the content of a file, by store. It skips damaged lines, and the incomplete
// line of a killed writer.
func readMarks(path string) (map[string]tagMarks, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	stores := make(map[string]tagMarks)
	if len(text) == 0 {
		return stores, nil
	}
	rest, ok := strings.CutPrefix(string(text), marksHeader)
	if !ok {
		return nil, errors.New("it is not such a file: move it away")
	}
	for line := range strings.Lines(rest) {
		var store, tag, source string
		var mark segment.Mark
		if n, _ := fmt.Sscanf(line, "mark %q %q %q %d %q\n", &store, &tag, &source, &mark.High, &mark.Server); n == 5 && mark.High >= 0 {
			if stores[store] == nil {
				stores[store] = make(tagMarks)
			}
			if stores[store][tag] == nil {
				stores[store][tag] = make(map[string]segment.Mark)
			}
			stores[store][tag][source] = mark
		} else if n, _ := fmt.Sscanf(line, "forget %q %q\n", &store, &tag); n == 2 {
			delete(stores[store], tag)
		}
	}
	return stores, nil
}
