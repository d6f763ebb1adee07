package worker

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
)

// stateSlot is the size of a slot of a state: a block of its own, so that a torn write leaves the
// other slot alone. A record keeps every layout ever served, so its slots are larger.
const (
	stateSlot  = 4096
	recordSlot = 16 * stateSlot
)

// slotMagic begins every slot; the number of the format follows it.
const (
	slotMagic     = "leaf-slot"
	stateVersion  = 2 // 1 did not say how far a lease is safe
	staticVersion = 1
)

// A File keeps a state: an *os.File that the process holds open and locked for life.
type File interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// errDamaged: the content of the file differs from the last write, or may differ.
var errDamaged = errors.New("the file is damaged, or not one of this program's")

// slots are two checksummed places in a file, written in turn and in place: the previous content
// stays until the new one is on the disk. Write n goes to slot n%2. The first write fills both, so
// that no slot is ever empty.
type slots struct {
	file    File
	size    int64
	version int    // of the format: the newest known one
	next    uint64 // number of the next write
	found   int    // the format of the content read, 0 without content
}

// read returns the last write, nil if the file is empty. It believes only a file with two writes,
// one directly after the other. Any other file may lack the last write, and the one before it, with
// a lower mark, must not replace it; the error then wraps errDamaged. It wraps [ErrNewer] if a newer
// release wrote the file.
//
// The process has used nothing of a torn write, so the slot before it would still be right. But a
// torn slot looks like one that the disk has lost since, and doubt costs only a worker ID.
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
	var numbers [2]uint64
	var texts [2][]byte
	intact := n == len(buf)
	for i := range numbers {
		numbers[i], texts[i], err = s.parse(buf[int64(i)*s.size:][:s.size])
		if errors.Is(err, ErrNewer) {
			return nil, err
		}
		intact = intact && err == nil
	}
	last := max(numbers[0], numbers[1])
	switch {
	case !intact:
		return nil, errDamaged
	case last < 2 || numbers[last%2] != last || numbers[(last-1)%2] != last-1:
		return nil, fmt.Errorf("%w: it holds the writes %d and %d", errDamaged, numbers[0], numbers[1])
	}
	s.next = last + 1
	return texts[last%2], nil
}

// write makes text the content. If it fails the content may be the old or the new
// one; the next write goes to the same slot again.
func (s *slots) write(text []byte) error {
	last := max(s.next, 2)
	for number := s.next; number <= last; number++ {
		slot, err := s.format(number, text)
		if err != nil {
			return err
		}
		if _, err := s.file.WriteAt(slot, int64(number%2)*s.size); err != nil {
			return fmt.Errorf("write the state: %w", err)
		}
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("write the state through to the disk: %w", err)
	}
	s.next = last + 1
	return nil
}

// erase prepares a damaged file for its next write. It waits for the disk: no old slot may remain
// that matches the first write.
func (s *slots) erase() error {
	_, err := s.file.WriteAt(make([]byte, 2*s.size), 0)
	if err == nil {
		err = s.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("erase the state: %w", err)
	}
	s.next = 1
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// format returns "leaf-slot VERSION NUMBER LENGTH CHECKSUM\nTEXT", padded.
func (s *slots) format(number uint64, text []byte) ([]byte, error) {
	sum := checksum(number, text)
	slot := fmt.Appendf(nil, "%s %d %d %d %08x\n", slotMagic, s.version, number, len(text), sum)
	slot = append(slot, text...)
	if int64(len(slot)) > s.size {
		return nil, fmt.Errorf("write the state: %d bytes do not fit in %d", len(slot), s.size)
	}
	return append(slot, make([]byte, s.size-int64(len(slot)))...), nil
}

func checksum(number uint64, text []byte) uint32 {
	sum := crc32.Checksum(strconv.AppendUint(nil, number, 10), castagnoli)
	return crc32.Update(sum, castagnoli, text)
}

// parse returns the number and the text of a slot, 0 if it is empty.
func (s *slots) parse(slot []byte) (number uint64, text []byte, err error) {
	if len(bytes.Trim(slot, "\x00")) == 0 {
		return 0, nil, nil
	}
	line, rest, _ := bytes.Cut(slot, []byte("\n"))
	var version, length int
	var sum uint32
	n, _ := fmt.Sscanf(string(line), slotMagic+" %d %d %d %x", &version, &number, &length, &sum)
	switch {
	case version > s.version:
		return 0, nil, fmt.Errorf("state of format %d: %w", version, ErrNewer)
	case n < 4, number == 0, length < 0 || length > len(rest), checksum(number, rest[:length]) != sum:
		return 0, nil, errDamaged
	}
	s.found = version
	return number, bytes.Clone(rest[:length]), nil
}
