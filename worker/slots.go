package worker

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
)

// stateSlot is the size of a slot of a state: a block of its own, so that a write that
// is cut off leaves the other slot alone. A record, which keeps every layout that was
// ever served, gets more room.
const (
	stateSlot  = 4096
	recordSlot = 16 * stateSlot
)

// slotMagic begins every slot; the number of the format follows it.
const (
	slotMagic   = "leaf-slot"
	slotVersion = 1
)

// A File is what a state is kept in: an *os.File, held open and locked for as long as
// the process lives.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// errDamaged: the file holds something that is not what was written last, or nobody
// can tell.
var errDamaged = errors.New("the file is damaged, or not one of this program's")

// slots are two checksummed places in a file, written in turn and in place: what was
// written before stays until the new content is on the disk.
type slots struct {
	file File
	size int64
	next uint64 // number of the next write
}

// read returns what was written last, nil if nothing ever was. A slot that is damaged
// may have been the last one, or a write that was cut off: nobody can tell, so that
// the error wraps errDamaged. It wraps [ErrNewer] if a newer release wrote the file.
func (s *slots) read() ([]byte, error) {
	buf := make([]byte, 2*s.size)
	n, err := s.file.ReadAt(buf, 0)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the state: %w", err)
	}
	s.next = 1
	if n == 0 {
		return nil, nil
	}
	var text []byte
	var damaged error
	for i := range 2 {
		number, content, err := parseSlot(buf[int64(i)*s.size:][:s.size])
		switch {
		case errors.Is(err, ErrNewer):
			return nil, err
		case err != nil:
			damaged = err
		case number >= s.next:
			s.next, text = number+1, content
		}
	}
	if damaged == nil && n < len(buf) {
		damaged = fmt.Errorf("%w: it holds %d bytes of %d", errDamaged, n, len(buf))
	}
	if damaged != nil {
		return nil, damaged
	}
	return text, nil
}

// write makes text the content. If it fails the content may be the old or the new
// one; the next write goes to the same slot again.
func (s *slots) write(text []byte) error {
	slot, err := formatSlot(s.next, text, s.size)
	if err != nil {
		return err
	}
	if s.next == 1 { // the first write of a file fills both slots
		if _, err := s.file.WriteAt(make([]byte, s.size), 0); err != nil {
			return fmt.Errorf("write the state: %w", err)
		}
	}
	if _, err := s.file.WriteAt(slot, int64(s.next%2)*s.size); err != nil {
		return fmt.Errorf("write the state: %w", err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("write the state through to the disk: %w", err)
	}
	s.next++
	return nil
}

// erase prepares a damaged file for its next write.
func (s *slots) erase() error {
	if _, err := s.file.WriteAt(make([]byte, 2*s.size), 0); err != nil {
		return fmt.Errorf("erase the state: %w", err)
	}
	s.next = 1
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// formatSlot returns "leaf-slot VERSION NUMBER LENGTH CHECKSUM\nTEXT", padded.
func formatSlot(number uint64, text []byte, size int64) ([]byte, error) {
	sum := checksum(number, text)
	slot := fmt.Appendf(nil, "%s %d %d %d %08x\n", slotMagic, slotVersion, number, len(text), sum)
	slot = append(slot, text...)
	if int64(len(slot)) > size {
		return nil, fmt.Errorf("write the state: %d bytes do not fit in %d", len(slot), size)
	}
	return append(slot, make([]byte, size-int64(len(slot)))...), nil
}

func checksum(number uint64, text []byte) uint32 {
	sum := crc32.Checksum(strconv.AppendUint(nil, number, 10), castagnoli)
	return crc32.Update(sum, castagnoli, text)
}

// parseSlot returns the number and the text of a slot, 0 if it was never written.
func parseSlot(slot []byte) (number uint64, text []byte, err error) {
	if len(bytes.Trim(slot, "\x00")) == 0 {
		return 0, nil, nil
	}
	line, rest, _ := bytes.Cut(slot, []byte("\n"))
	var version, length int
	var sum uint32
	var magic string
	n, _ := fmt.Sscanf(string(line), "%s %d", &magic, &version)
	switch {
	case n < 2 || magic != slotMagic:
		return 0, nil, errDamaged
	case version > slotVersion:
		return 0, nil, fmt.Errorf("state of format %d: %w", version, ErrNewer)
	}
	if n, _ := fmt.Sscanf(string(line), slotMagic+" %d %d %d %x", &version, &number, &length, &sum); n < 4 {
		return 0, nil, errDamaged
	}
	if number == 0 || length < 0 || length > len(rest) || checksum(number, rest[:length]) != sum {
		return 0, nil, errDamaged
	}
	return number, bytes.Clone(rest[:length]), nil
}
