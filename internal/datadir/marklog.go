package datadir

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// A log is written anew when it is longer than minCompact bytes and than
// compactFactor times what its content takes.
const (
	minCompact    = 1 << 20
	compactFactor = 4
)

// lockPatience is how long Forget waits for the marks of other processes.
const lockPatience = 5 * time.Second

// A markLog is the marks files of a directory, one of which is its own.
type markLog struct {
	dir      string
	slot     int
	patience time.Duration // lockPatience
	logger   *slog.Logger

	mu    sync.Mutex
	file  *os.File // our own, for appending; nil once closed
	size  int64    // of file, about: others may have appended to it
	limit int64    // the size at which compacting is next considered
	torn  bool     // the last write to file was cut off within a line
	tails map[int]*tail
}

// openMarkLog opens the directory's files and makes our own if there is none.
func openMarkLog(dir string, slot int, logger *slog.Logger) (*markLog, error) {
	l := &markLog{dir: dir, slot: slot, patience: lockPatience, logger: logger, limit: minCompact, tails: make(map[int]*tail)}
	if err := l.refresh(); err != nil {
		return nil, err
	}
	if own := l.own(); own.header == "" {
		return l, l.replace("")
	}
	f, err := os.OpenFile(l.name(slot), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	l.file, l.size, l.torn = f, info.Size(), info.Size() != l.own().offset
	return l, nil
}

func (l *markLog) name(slot int) string {
	return filepath.Join(l.dir, "marks-"+strconv.Itoa(slot))
}

// own returns the tail of our own file.
func (l *markLog) own() *tail {
	if l.tails[l.slot] == nil {
		l.tails[l.slot] = &tail{path: l.name(l.slot)}
	}
	return l.tails[l.slot]
}

// refresh brings the tails of all slots up to date, as far as they can be read.
func (l *markLog) refresh() error {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		number, ok := strings.CutPrefix(entry.Name(), "marks-")
		slot, bad := strconv.Atoi(number)
		if ok && bad == nil && strconv.Itoa(slot) == number && l.tails[slot] == nil {
			l.tails[slot] = &tail{path: l.name(slot)}
		}
	}
	for _, t := range l.tails {
		err = errors.Join(err, l.follow(t))
	}
	return err
}

// follow brings one tail up to date and reports the lines it had to skip.
func (l *markLog) follow(t *tail) error {
	before := t.corrupt
	err := t.refresh()
	if t.corrupt > before {
		l.logger.Warn("skipped lines of a marks file that make no sense", "path", t.path, "lines", t.corrupt-before)
	}
	return err
}

func (l *markLog) recall(k key) map[string]segment.Mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.refresh(); err != nil {
		l.logger.Warn("read the marks", "tag", k.tag, "err", err)
	}
	marks := make(map[string]segment.Mark)
	maps.Copy(marks, l.own().content[k])
	for _, t := range l.tails {
		for source, mark := range t.content[k] {
			if known, ok := marks[source]; !ok || mark.High > known.High {
				marks[source] = mark
			}
		}
	}
	return marks
}

// tags counts the tags of store that the files know of.
func (l *markLog) tags(store string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := make(map[string]bool)
	for _, t := range l.tails {
		for k := range t.content {
			known[k.tag] = known[k.tag] || k.store == store
		}
	}
	maps.DeleteFunc(known, func(_ string, ours bool) bool { return !ours })
	return len(known)
}

func (l *markLog) add(r record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.append(r.line()); err != nil {
		return err
	}
	if l.size > l.limit {
		l.compact()
	}
	return nil
}

// append adds a line to our own file by one write.
func (l *markLog) append(line string) error {
	if l.file == nil {
		return os.ErrClosed
	}
	if l.torn {
		line = "\n" + line
	}
	n, err := l.file.WriteString(line)
	l.size += int64(n)
	l.torn = err != nil && (l.torn || n > 0)
	return err
}

// forget voids what the files say of k so far.
func (l *markLog) forget(k key) error {
	lock, err := l.lock(l.patience) // before mu, for which every Remember waits
	if err != nil {
		return err
	}
	defer lock.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	err = l.refresh()
	line := record{key: k, forget: true}.line()
	for slot, t := range l.tails {
		switch {
		case t.content[k] == nil:
		case slot == l.slot:
			err = errors.Join(err, l.append(line))
		default:
			err = errors.Join(err, appendTo(t.path, line))
		}
	}
	return err
}

// appendTo adds a line to another slot's file, whose process may be dead, alive, or
// have died within a line.
func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		_, err = f.ReadAt(last, info.Size()-1)
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if last[0] != '\n' {
		line = "\n" + line
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

// lock takes the lock under which files are replaced, and under which processes
// write to the files of others.
func (l *markLog) lock(patience time.Duration) (*os.File, error) {
	deadline := time.Now().Add(patience)
	for {
		lock, err := lockFile(filepath.Join(l.dir, "marks.lock"))
		if !errors.Is(err, errLocked) || !time.Now().Before(deadline) {
			return lock, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// compact writes our own file anew if that makes it much shorter. Failing is no
// failure of what was remembered: the long file is as good.
func (l *markLog) compact() {
	l.limit = l.size + minCompact/4
	lock, err := l.lock(0)
	if err != nil {
		if !errors.Is(err, errLocked) {
			l.logger.Warn("compact the marks", "path", l.name(l.slot), "err", err)
		}
		return
	}
	defer lock.Close()
	if err = l.follow(l.own()); err == nil {
		lines := l.own().content.lines()
		if l.size <= compactFactor*int64(len(lines)) {
			l.limit = max(minCompact, compactFactor*int64(len(lines)))
			return
		}
		err = l.replace(lines)
	}
	if err != nil {
		l.logger.Warn("compact the marks", "path", l.name(l.slot), "err", err)
	}
}

// replace makes our own file one that holds lines, all or nothing.
func (l *markLog) replace(lines string) error {
	path := l.name(l.slot)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := f.WriteString(newHeader() + lines)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, f.Close(), os.Remove(path+".new")))
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size, l.torn = f, int64(n), false
	l.limit = max(minCompact, compactFactor*int64(n))
	return syncDir(l.dir)
}

func (l *markLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.file.Sync(), l.file.Close())
	l.file = nil
	return err
}
