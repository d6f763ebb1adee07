package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The formats of state files: the oldest readable one, the present one, and an unknown one.
const (
	oldestState  = 1
	presentState = 2
	futureState  = 99
)

// oldestState has a server be started on the state file of an old release.
func (s *leaseStrike) oldestState() error {
	s.n.life.kill()
	err := rewriteState(s.n.data, oldestState)
	s.launch(s.n)
	return err
}

// futureState has a server be started on the state file of a newer release, which it refuses;
// the newer release comes back.
func (s *leaseStrike) futureState() error {
	s.n.life.kill()
	err := rewriteState(s.n.data, futureState)
	if err != nil {
		s.launch(s.n)
		return err
	}
	refused := launch(s.t, s.n.command("off")...)
	select {
	case <-refused.exited:
		if text := refused.output(); refused.cmd.ProcessState.Success() || !strings.Contains(text, "written by a newer release of this program: upgrade it") {
			err = errors.Join(err, fmt.Errorf("it ended with %v:\n%s", refused.cmd.ProcessState, text))
		}
	case <-time.After(30 * time.Second):
		refused.kill()
		err = errors.Join(err, fmt.Errorf("it runs with a state file of the future:\n%s", refused.output()))
	}
	err = errors.Join(err, rewriteState(s.n.data, presentState))
	s.launch(s.n)
	return err
}

// errNoState is why a state file has no format: its server was killed before it claimed a worker
// ID.
var errNoState = fmt.Errorf("%w: the state file is empty", errNoOccasion)

// rewriteState gives a state file another format, in place: it stays the same file. The oldest
// one did not say how far a lease is safe.
func rewriteState(data string, version int) error {
	f, err := os.OpenFile(filepath.Join(data, "worker-0"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const size = 4096
	if info, err := f.Stat(); err != nil || info.Size() < 2*size {
		return cmp.Or(err, errNoState)
	}
	for i := range int64(2) {
		slot := make([]byte, size)
		if _, err := f.ReadAt(slot, i*size); err != nil {
			return err
		}
		var was, number, length int
		var sum uint32
		line, rest, _ := bytes.Cut(slot, []byte("\n"))
		if _, err := fmt.Sscanf(string(line), "leaf-slot %d %d %d %x", &was, &number, &length, &sum); err != nil {
			return fmt.Errorf("slot %d of the state file: %q: %w", i, line, err)
		}
		text := rest[:length]
		if version == oldestState {
			if text, err = without(text, "safe"); err != nil {
				return err
			}
		}
		table := crc32.MakeTable(crc32.Castagnoli)
		sum = crc32.Update(crc32.Checksum([]byte(strconv.Itoa(number)), table), table, text)
		changed := make([]byte, size)
		copy(changed, fmt.Appendf(nil, "leaf-slot %d %d %d %08x\n%s", version, number, len(text), sum, text))
		if _, err := f.WriteAt(changed, i*size); err != nil {
			return err
		}
	}
	return nil
}

// without returns a JSON object without one of its fields.
func without(text []byte, field string) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, field)
	return json.Marshal(fields)
}
