package segment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/leaf-id/leaf/internal/filelock"
)

// A memory's file is rewritten when it is longer than minRewrite bytes and than
// rewriteFactor times what its marks take.
const (
	minRewrite    = 1 << 20
	rewriteFactor = 4
)

// memoryHeader begins the file. A higher number is the format of a newer release.
const memoryHeader = "leaf-counters 1\n"

// fsync makes a file, or the names in a folder, survive a crash of the machine. Tests replace it.
var fsync = (*os.File).Sync

// A FileMemory is a [Memory] of one store in a file. One process has it open.
//
// When Remember returns, the operating system has the mark, so it survives the death of the
// process. Close syncs the file to the disk: a power cut may lose the latest marks. A mark costs
// one line of the file, for any number of tags.
type FileMemory struct {
	path string
	log  *slog.Logger

	mu    sync.Mutex
	file  *os.File               // locked
	size  int64                  // the whole lines of file
	limit int64                  // the size at which rewriting is considered
	marks map[string]sourceMarks // by tag
}

// OpenMemory opens the memory in the file at path, or creates it, and locks the file until Close or
// the end of the process. Each process and each store needs a file of its own. A nil logger
// discards.
func OpenMemory(path string, logger *slog.Logger) (*FileMemory, error) {
	m := &FileMemory{
		path: path, log: cmp.Or(logger, slog.New(slog.DiscardHandler)),
		limit: minRewrite, marks: make(map[string]sourceMarks),
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lockAt(f, path); err == nil {
		err = m.read(f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the memory of counters %s: %w", path, err), f.Close())
	}
	m.file = f
	return m, nil
}

// lockAt locks f, an open file from path. Another process may have replaced the file there before
// it released the lock of this one.
func lockAt(f *os.File, path string) error {
	if err := lockFile(f); err != nil {
		return err
	}
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	found, err := os.Stat(path)
	if err == nil && !os.SameFile(opened, found) {
		err = errors.New("another process is using it")
	}
	return err
}

// Recall returns the remembered marks of tag, by source.
func (m *FileMemory) Recall(tag string) map[string]Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	marks := m.marks[tag]
	if marks == nil {
		return nil
	}
	bySource := make(map[string]Mark, len(marks))
	for _, mark := range marks {
		bySource[mark.source] = mark.Mark
	}
	return bySource
}

// Remember replaces the mark of a source of tag. On an error, such as that of a full disk, the
// earlier mark stays.
func (m *FileMemory) Remember(tag, source string, mark Mark) error {
	if mark.High < 0 {
		return fmt.Errorf("remember tag %q: its mark %d is negative", tag, mark.High)
	}
	return m.write(tag, source, mark)
}

// Forget drops all marks of tag.
func (m *FileMemory) Forget(tag string) error { return m.write(tag, "", Mark{High: -1}) }

// Merge takes over what other remembers, and syncs the file to the disk. Of two marks of one
// source the higher one stays.
func (m *FileMemory) Merge(other *FileMemory) error {
	other.mu.Lock()
	defer other.mu.Unlock()
	for tag, sources := range other.marks {
		known := m.Recall(tag)
		for _, mark := range sources {
			if old, ok := known[mark.source]; ok && old.High >= mark.High {
				continue
			}
			if err := m.write(tag, mark.source, mark.Mark); err != nil {
				return err
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return fsync(m.file)
}

// Tags returns of how many tags something is remembered.
func (m *FileMemory) Tags() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.marks)
	if _, ok := m.marks[identityTag]; ok {
		n--
	}
	return n
}

// Close syncs the file to the disk and closes it.
func (m *FileMemory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	err := fsync(m.file)
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return errors.Join(err, m.file.Close())
}

// read takes up the lines of f. Damaged ones are skipped, and one whose end is missing is
// overwritten by the next: its writer died.
func (m *FileMemory) read(f *os.File) error {
	text, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	m.size = int64(len(memoryHeader))
	var version int
	_, _ = fmt.Sscanf(string(text[:min(len(text), 64)]), "leaf-counters %d\n", &version)
	switch {
	case strings.HasPrefix(memoryHeader, string(text)): // it is new
		_, err = f.WriteAt([]byte(memoryHeader), 0)
		return errors.Join(err, fsync(f), syncFolder(m.path))
	case version > 1:
		return fmt.Errorf("its format %d is that of a newer release: upgrade this program", version)
	case !bytes.HasPrefix(text, []byte(memoryHeader)):
		return errors.New("it is not such a file: move it away")
	}
	skipped := 0
	for line := range bytes.Lines(text[m.size : bytes.LastIndexByte(text, '\n')+1]) {
		if tag, source, mark, ok := parseMark(string(line)); ok {
			m.apply(tag, source, mark)
		} else {
			skipped++
		}
		m.size += int64(len(line))
	}
	if skipped > 0 {
		m.log.Warn("skipped damaged lines of the memory of counters", "path", m.path, "lines", skipped)
	}
	return nil
}

// write adds a line to the file, and rewrites that if it has grown long.
func (m *FileMemory) write(tag, source string, mark Mark) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	line := markLine(tag, source, mark)
	if _, err := m.file.WriteAt([]byte(line), m.size); err != nil {
		return fmt.Errorf("remember tag %q: %w", tag, err)
	}
	m.size += int64(len(line))
	m.apply(tag, source, mark)
	if m.size > m.limit {
		if err := m.rewrite(); err != nil { // the long file is as good
			m.log.Warn("rewrite the memory of counters", "path", m.path, "err", err)
		}
	}
	return nil
}

// apply applies a line: a negative mark voids the earlier ones.
func (m *FileMemory) apply(tag, source string, mark Mark) {
	if mark.High < 0 {
		delete(m.marks, tag)
		return
	}
	marks := m.marks[tag]
	marks.set(source, mark)
	m.marks[tag] = marks
}

// rewrite replaces the file by one with a line for each mark, if this shortens it much.
func (m *FileMemory) rewrite() error {
	content := bytes.NewBufferString(memoryHeader)
	for tag, sources := range m.marks {
		for _, mark := range sources {
			content.WriteString(markLine(tag, mark.source, mark.Mark))
		}
	}
	size := int64(content.Len())
	if m.limit = max(minRewrite, rewriteFactor*size); m.size <= m.limit {
		return nil
	}
	m.limit = m.size + minRewrite // if this fails, it is tried again there
	f, err := os.OpenFile(m.path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = content.WriteTo(f)
	for _, step := range []func() error{func() error { return fsync(f) }, func() error { return lockFile(f) }, func() error { return os.Rename(f.Name(), m.path) }} {
		if err == nil {
			err = step()
		}
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	m.file.Close()
	m.file, m.size, m.limit = f, size, max(minRewrite, rewriteFactor*size)
	return syncFolder(m.path)
}

// lockFile locks f for this process until f is closed, if the system has such locks.
func lockFile(f *os.File) error {
	if !filelock.Supported {
		return nil
	}
	if err := filelock.Lock(f); err != nil {
		return fmt.Errorf("lock it against other processes: %w", err)
	}
	return nil
}

// syncFolder makes the file at path durable in its folder, if the system can.
func syncFolder(path string) error {
	if !filelock.Supported {
		return nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(fsync(folder), folder.Close())
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// markLine returns `CHECKSUM "TAG" "SOURCE" HIGH "SERVER"` with its end. Strings are quoted
// as in Go, so that any of them fits a line.
func markLine(tag, source string, mark Mark) string {
	text := fmt.Sprintf("%q %q %d %q\n", tag, source, mark.High, mark.Server)
	return fmt.Sprintf("%08x %s", crc32.Checksum([]byte(text), castagnoli), text)
}

// parseMark reads a line; ok says that it is whole. A start reads one for each tag, so it does
// without fmt.
func parseMark(line string) (tag, source string, mark Mark, ok bool) {
	head, text, _ := strings.Cut(line, " ")
	sum, err := strconv.ParseUint(head, 16, 32)
	if err != nil || uint32(sum) != crc32.Checksum([]byte(text), castagnoli) {
		return "", "", Mark{}, false
	}
	var err2, err3, err4 error
	tag, text, err = cutQuoted(text)
	source, text, err2 = cutQuoted(text)
	high, text, _ := strings.Cut(text, " ")
	mark.High, err3 = strconv.ParseInt(high, 10, 64)
	mark.Server, _, err4 = cutQuoted(text)
	return tag, source, mark, cmp.Or(err, err2, err3, err4) == nil
}

// cutQuoted returns the string that text begins with, quoted, and what follows it.
func cutQuoted(text string) (value, rest string, err error) {
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", err
	}
	_, rest, _ = strings.Cut(text[len(quoted):], " ")
	value, err = strconv.Unquote(quoted)
	return strings.Clone(value), rest, err
}
