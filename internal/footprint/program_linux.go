package footprint

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dropProgram unmaps the pages of the program file. The start of a Go program touches code all over
// the file, and the kernel maps 16 pages around each; later a part of them comes back from the page
// cache, without a read. Errors do not matter: then the pages stay.
func dropProgram() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range readOnly(smaps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
	}
}

// A mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// readOnly returns the read-only mappings of file in smaps without pages of the process's own: those
// are relocated data or the breakpoints of a debugger, and the file does not have them.
func readOnly(smaps []byte, file string) []mapping {
	var found []mapping
	var last mapping
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		line := lines.Text()
		var m mapping
		var perms string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &m.start, &m.end, &perms); n == 3 {
			last = mapping{}
			if (perms == "r-xp" || perms == "r--p") && strings.HasSuffix(line, " "+file) {
				last = m
			}
		}
		if own, ok := strings.CutPrefix(line, "Anonymous:"); ok && last != (mapping{}) && strings.TrimSpace(own) == "0 kB" {
			found = append(found, last)
		}
	}
	return found
}
