package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
)

// A tornFile is a file whose machine may crash: of the writes since the last sync, any
// may be on the disk.
type tornFile struct {
	durable, cached []byte
	pending         []func(content []byte) []byte
}

func (f *tornFile) ReadAt(b []byte, off int64) (int, error) {
	n := copy(b, f.cached[min(int(off), len(f.cached)):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *tornFile) WriteAt(b []byte, off int64) (int, error) {
	b = slices.Clone(b)
	write := func(content []byte) []byte {
		if missing := int(off) + len(b) - len(content); missing > 0 {
			content = append(content, make([]byte, missing)...)
		}
		copy(content[off:], b)
		return content
	}
	f.cached, f.pending = write(f.cached), append(f.pending, write)
	return len(b), nil
}

func (f *tornFile) Sync() error {
	f.durable, f.pending = slices.Clone(f.cached), nil
	return nil
}

// crashes calls see with every content that a crash may leave.
func (f *tornFile) crashes(see func(content []byte)) {
	for subset := range 1 << len(f.pending) {
		content := slices.Clone(f.durable)
		for i, write := range f.pending {
			if subset>>i&1 == 1 {
				content = write(content)
			}
		}
		see(content)
	}
}

func testSlots(f File) *slots { return &slots{file: f, size: 256, version: stateVersion} }

// A crash leaves some of the writes, and the disk then loses a slot. The file is not believed, or
// holds the last synced content or a later one.
func TestSlotsNeverGoBack(t *testing.T) {
	starts := map[string][]byte{"new": nil, "zeros": make([]byte, 512)}
	for n := range uint64(5) { // damaged, with an old slot that is not
		slot, err := testSlots(nil).format(n+1, []byte("999"))
		if err != nil {
			t.Fatal(err)
		}
		place := int(n+1) % 2
		content := bytes.Repeat([]byte("x"), 512)
		copy(content[place*256:], slot)
		starts[fmt.Sprint("damaged beside write ", n+1)] = content
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			f := &tornFile{durable: start, cached: slices.Clone(start)}
			synced := 0
			check := func() {
				f.crashes(func(content []byte) {
					believed(t, content, synced)
					for slot := range 2 {
						lost := slices.Clone(content)
						clear(lost[min(len(lost), slot*256):min(len(lost), slot*256+256)])
						believed(t, lost, synced)
					}
				})
			}
			s := testSlots(&checkedFile{f, check})
			if _, err := s.read(); errors.Is(err, errDamaged) {
				if err := s.erase(); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 6 {
				if err := s.write([]byte(strconv.Itoa(i + 1))); err != nil {
					t.Fatal(err)
				}
				synced = i + 1
				check()
				believedIs(t, f.cached, synced)
			}
		})
	}
}

// A checkedFile is looked at after every write, and before a sync is acknowledged.
type checkedFile struct {
	*tornFile
	check func()
}

func (f *checkedFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.tornFile.WriteAt(b, off)
	f.check()
	return n, err
}

func (f *checkedFile) Sync() error {
	err := f.tornFile.Sync()
	f.check()
	return err
}

// believed fails if content is believed and older than the synced one.
func believed(t *testing.T, content []byte, synced int) {
	t.Helper()
	text, err := testSlots(&tornFile{cached: content}).read()
	if errors.Is(err, errDamaged) || err == nil && text == nil && synced == 0 {
		return
	}
	got, convErr := strconv.Atoi(string(text))
	if err != nil || convErr != nil || got < synced || got > synced+1 {
		t.Fatalf("write %d was synced, and %q is believed (%v) of %q", synced, text, err, bytes.ReplaceAll(content, []byte{0}, nil))
	}
}

func believedIs(t *testing.T, content []byte, want int) {
	t.Helper()
	text, err := testSlots(&tornFile{cached: content}).read()
	if err != nil || string(text) != strconv.Itoa(want) {
		t.Fatalf("got %q, %v, want %d", text, err, want)
	}
}
