package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

func FuzzParseRecord(f *testing.F) {
	f.Add(`mark "store" "tag" "source" 2001 "server"`)
	f.Add(`forget "store" "tag"`)
	f.Add(`mark "s" "\xff\n" "" 0 ""`)
	f.Add("mark `s` \"t\" \"\" 1 \"\"")
	f.Add(`mark "s" "t" "" 9223372036854775808 ""`)
	f.Fuzz(func(t *testing.T, line string) {
		r, err := parseRecord(line)
		if err != nil {
			return
		}
		written := r.line()
		if strings.Count(written, "\n") != 1 || !strings.HasSuffix(written, "\n") {
			t.Fatalf("%+v is written as %q, which is not one line", r, written)
		}
		again, err := parseRecord(strings.TrimSuffix(written, "\n"))
		if err != nil || again != r {
			t.Fatalf("%q came back as %+v, want %+v, error %v", written, again, r, err)
		}
		for end := range len(written) - 1 {
			if _, err := parseRecord(written[:end]); err == nil {
				t.Fatalf("%q is cut off but reads as a record", written[:end])
			}
		}
	})
}

func FuzzRecordRoundTrip(f *testing.F) {
	f.Add("store", "tag", "source", "server", int64(7), false)
	f.Add("\x00", "\xff\"\\\n", "界", "", int64(1<<62), true)
	f.Fuzz(func(t *testing.T, store, tag, source, server string, high int64, forget bool) {
		want := record{key: key{store, tag}, forget: forget}
		if !forget {
			want.source, want.mark = source, segment.Mark{High: max(high, 0), Server: server}
		}
		got, err := parseRecord(strings.TrimSuffix(want.line(), "\n"))
		if err != nil || got != want {
			t.Fatalf("%+v came back as %+v, error %v", want, got, err)
		}
	})
}

func FuzzTail(f *testing.F) {
	f.Add("leaf-marks 1 x\nmark \"store\" \"tag\" \"\" 1 \"\"\n", "mark \"store\" \"tag\" \"\" 2 \"\"\n")
	f.Add("leaf-marks 1 x\nmark \"st", "ore\" \"tag\" \"\" 1 \"\"\n")
	f.Fuzz(func(t *testing.T, start, more string) {
		path := filepath.Join(t.TempDir(), "marks-0")
		whole, bits := &tail{path: path}, &tail{path: path}
		write(t, path, start)
		_ = bits.refresh()
		write(t, path, start+more)
		if errWhole, errBits := whole.refresh(), bits.refresh(); (errWhole == nil) != (errBits == nil) {
			t.Fatalf("read at once: %v, read in two parts: %v", errWhole, errBits)
		}
		if whole.content.size() != bits.content.size() || whole.offset != bits.offset || whole.corrupt != bits.corrupt {
			t.Fatalf("read at once: %+v, read in two parts: %+v", whole, bits)
		}
	})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c content) size() (n int) {
	for _, sources := range c {
		n += len(sources)
	}
	return n
}
