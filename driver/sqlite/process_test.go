package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// Several processes share one file, and one of them is killed at its work.
func TestSQLiteProcesses(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", MaxID: 1, Step: 10})
	var ranges drivertest.Ranges
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for _, r := range runChild(t, path) {
				ranges.Add(r)
			}
		})
	}
	s := openSQLite(t, path)
	for range childCalls {
		g, err := advanceInTurn(t.Context(), s)
		if err != nil {
			t.Error(err)
			break
		}
		ranges.Add(g.Range)
	}
	wg.Wait()
	if err := ranges.CheckExactly(leaf.Range{Start: 1, End: 1 + 3*3*childCalls}); err != nil {
		t.Error(err)
	}
}

func TestSQLiteKilledProcess(t *testing.T) {
	path := newSQLite(t, segment.Tag{Name: "order", MaxID: 1, Step: 10})
	var ranges drivertest.Ranges
	for range 5 {
		for _, r := range killChild(t, path) {
			ranges.Add(r)
		}
	}
	g, err := openSQLite(t, path).Advance(t.Context(), "order", 3)
	if err != nil {
		t.Fatal(err)
	}
	ranges.Add(g.Range)
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

func childCommand(path string) (*exec.Cmd, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), childFile+"="+path)
	return cmd, nil
}

func runChild(t *testing.T, path string) []leaf.Range {
	cmd, err := childCommand(path)
	if err != nil {
		t.Error(err)
		return nil
	}
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("child: %v", err)
	}
	return parseRanges(out)
}

// killChild ends a child after it has printed its twentieth range.
func killChild(t *testing.T, path string) []leaf.Range {
	t.Helper()
	cmd, err := childCommand(path)
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	chunk := make([]byte, 4096)
	for killed := false; ; {
		n, err := pipe.Read(chunk)
		out.Write(chunk[:n])
		if err != nil {
			break
		}
		if !killed && bytes.Count(out.Bytes(), []byte("\n")) >= 20 {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the child had ended before it was killed")
	}
	return parseRanges(out.Bytes())
}

func parseRanges(out []byte) []leaf.Range {
	var all []leaf.Range
	for line := range bytes.Lines(out) {
		var r leaf.Range
		if _, err := fmt.Sscan(string(line), &r.Start, &r.End); err == nil {
			all = append(all, r)
		}
	}
	return all
}
