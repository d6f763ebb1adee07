package e2e

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/internal/testserver"
)

// status is what `leaf status -o json` says of the sample tag.
func (s *server) refills() int64 {
	s.t.Helper()
	out, err := command(s.t, "status", "-o", "json", "--server", s.url)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	var status struct {
		Tags []struct {
			Tag     string
			Refills json.Number
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	for _, tag := range status.Tags {
		if tag.Tag == sampleTag {
			n, err := tag.Refills.Int64()
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	s.t.Fatalf("no statistics of %s in\n%s", sampleTag, out)
	return 0
}

// pace asks for rate IDs a second for d, n at a time, and returns the highest ID.
func (s *server) pace(rate, n int, d time.Duration) (highest int64) {
	s.t.Helper()
	pause := time.Second * time.Duration(n) / time.Duration(rate)
	for end, due := time.Now().Add(d), time.Now(); time.Now().Before(end); due = due.Add(pause) {
		time.Sleep(time.Until(due))
		ids, err := s.ids(sampleTag, n)
		if err != nil {
			s.t.Fatal(err)
		}
		highest = slices.Max(append(ids, highest))
	}
	return highest
}

// From 10 IDs a second to 10,000 without an error. The stock follows the use: a crash then costs
// as many IDs as were issued and two steps, at most.
func TestBurstAndLossBudget(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	const step = 2000
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, "--data", data)
	s.next(sampleTag)
	s.pace(10, 1, figure(2*time.Second, 20*time.Second))
	calm := s.refills()
	highest := s.pace(10_000, 100, figure(4*time.Second, 30*time.Second))
	calls := s.refills() - calm
	s.kill()
	lost := sqliteMaxID(t, filepath.Join(data, "leaf.db"), sampleTag) - highest - 1
	t.Logf("%d store calls in the burst; %d IDs issued, %d lost by the crash", calls, highest, lost)
	if calls > 100 {
		t.Errorf("%d store calls in the burst", calls)
	}
	if lost < 0 || lost > highest+2*step {
		t.Errorf("%d IDs lost, of %d issued", lost, highest)
	}
}

// 20,000 single IDs on the Redis port within a second or two, and a crash: the counter stays near
// the issued IDs.
func TestCounterFollowsUse(t *testing.T) {
	t.Parallel()
	const n, step = 20_000, 1000
	data := filepath.Join(t.TempDir(), "data")
	s := serveWith(t, "LEAF_RESP=127.0.0.1:0", "--data", data)
	leafCommand(t, "tag", "create", "order", "--step", fmt.Sprint(step), "--server", s.url)
	conn, err := net.Dial("tcp", portAddress(t, s, "resp"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for range n / 100 {
		time.Sleep(5 * time.Millisecond)
		if _, err := conn.Write([]byte(strings.Repeat("INCR order\r\n", 100))); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			if !lines.Scan() || !strings.HasPrefix(lines.Text(), ":") {
				t.Fatalf("got %q, %v", lines.Text(), lines.Err())
			}
		}
	}
	s.kill()
	if maxID := sqliteMaxID(t, filepath.Join(data, "leaf.db"), "order"); maxID <= n || maxID > 2*n+2*step {
		t.Errorf("max_id is %d after %d IDs", maxID, n)
	}
}

// stockUp takes IDs until the server holds n of the sample tag, and returns them.
func (s *server) stockUp(n int64) (taken []int64) {
	s.t.Helper()
	until(s.t, time.Minute, "stocked", func() error {
		stock := s.stock(sampleTag)
		if stock >= n {
			return nil
		}
		ids, err := s.ids(sampleTag, 10_000)
		taken = append(taken, ids...)
		return errors.Join(err, fmt.Errorf("%d IDs", stock))
	})
	return taken
}

func sqliteMaxID(t testing.TB, path, tag string) (maxID int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.QueryRowContext(t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = ?", tag).Scan(&maxID)
	if err != nil {
		t.Fatal(err)
	}
	return maxID
}

// From the start of the process to the first ID, on a new embedded store and on an existing one, and
// the memory of the idle process after it. Logged, not judged.
func TestStartAndMemory(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	var first, again []time.Duration
	for i := range figure(2, 11) {
		if i%2 == 0 {
			if err := os.RemoveAll(data); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		s := serve(t, "--data", data)
		s.next(sampleTag)
		took := time.Since(start)
		if i%2 == 0 {
			first = append(first, took)
		} else {
			again = append(again, took)
		}
		time.Sleep(figure(0, 2*time.Second))
		t.Logf("first ID after %v, resident %s", took.Round(time.Millisecond), residentMemory(t, s.cmd.Process.Pid))
		s.stop()
	}
	t.Logf("median: %v with a new store, %v with an existing one", median(first), median(again))
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2].Round(time.Millisecond)
}

func residentMemory(t testing.TB, pid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(size)
		}
	}
	t.Fatal("no VmRSS")
	return ""
}
