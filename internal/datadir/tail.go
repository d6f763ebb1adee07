package datadir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// A marks file begins with a line of its format and version, and a random word by
// which a reader notices that the file was replaced.
const (
	magic   = "leaf-marks"
	version = 1
)

func newHeader() string { return fmt.Sprintf("%s %d %s\n", magic, version, rand.Text()) }

// maxHeader bounds the first line.
const maxHeader = 128

// checkHeader says whether the file of that first line can be read.
func checkHeader(line string) error {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != magic {
		return errors.New("this is not a file of marks; move it away")
	}
	v, err := strconv.Atoi(words[1])
	if err != nil || v < 1 {
		return fmt.Errorf("the version %q of its format makes no sense; move it away", words[1])
	}
	if v > version {
		return fmt.Errorf("its format version is %d, and this release knows only %d: a newer release wrote it, run that one", v, version)
	}
	return nil
}

// A tail follows a marks file that grows, and at times is replaced.
type tail struct {
	path string

	header  string // first line of the file that was read
	offset  int64  // what was read of it
	content content
	corrupt int // lines skipped
}

// refresh reads what is new. A last line without its end is left for later: it is
// being written, or its writer died.
func (t *tail) refresh() error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		*t = tail{path: t.path}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.restart(f); err != nil {
		return fmt.Errorf("read %s: %w", t.path, err)
	}
	news, err := io.ReadAll(io.NewSectionReader(f, t.offset, 1<<62))
	if err != nil {
		return fmt.Errorf("read %s: %w", t.path, err)
	}
	t.read(string(news))
	return nil
}

// restart goes back to the first record unless the file is the one read so far.
func (t *tail) restart(f *os.File) error {
	start := make([]byte, maxHeader)
	n, err := f.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return err
	}
	header, _, ended := strings.Cut(string(start[:n]), "\n")
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if t.content != nil && header == t.header && info.Size() >= t.offset {
		return nil
	}
	*t = tail{path: t.path}
	if n > 0 {
		if err := checkHeader(header); err != nil {
			return err
		}
		if !ended {
			return errors.New("its first line does not end; move it away")
		}
		t.header, t.offset = header, int64(len(header)+1)
	}
	t.content = make(content)
	return nil
}

func (t *tail) read(news string) {
	end := strings.LastIndexByte(news, '\n') + 1
	for line := range strings.Lines(news[:end]) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		if r, err := parseRecord(line); err == nil {
			t.content.apply(r)
		} else {
			t.corrupt++
		}
	}
	t.offset += int64(end)
}
