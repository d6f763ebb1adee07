package footprint

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadOnly(t *testing.T) {
	smaps := strings.Join([]string{
		"00400000-00401000 r-xp 00000000 fe:00 42   /opt/a program", "Size: 4 kB", "Anonymous: 0 kB",
		"00401000-00402000 r-xp 00001000 fe:00 42   /opt/a program", "Anonymous: 4 kB",
		"00402000-00403000 r--p 00002000 fe:00 42   /opt/a program", "Anonymous:             0 kB",
		"00403000-00404000 rw-p 00003000 fe:00 42   /opt/a program", "Anonymous: 0 kB",
		"00404000-00405000 r-xp 00000000 fe:00 43   /lib/libc.so", "Anonymous: 0 kB",
		"7f00000000-7f00001000 r--p 00000000 00:00 0", "Anonymous: 0 kB", "",
	}, "\n")
	want := []mapping{{0x400000, 0x401000}, {0x402000, 0x403000}}
	if diff := cmp.Diff(want, readOnly([]byte(smaps), "/opt/a program"), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The program runs on after its pages are gone, and has fewer.
func TestShrink(t *testing.T) {
	before := resident(t)
	Shrink()
	if after := resident(t); after >= before {
		t.Errorf("%d kB of files before, %d after", before, after)
	}
}

// resident returns the resident pages of the program file, in kB.
func resident(t *testing.T) (sum int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ours := false
	for line := range strings.Lines(string(smaps)) {
		f := strings.Fields(line)
		if strings.Contains(f[0], "-") {
			ours = strings.HasSuffix(strings.TrimSpace(line), program)
		}
		if ours && f[0] == "Rss:" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}
