package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/snowflake"
)

// uidSecond is how many IDs a second of the layout uid has.
const uidSecond = 8192

// A server that has issued IDs of the next five seconds is killed and restarted at once.
// uid-generator, which keeps its time only in memory, is safe there only while each start gets an
// unused worker ID.
func TestUIDKilledAhead(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]func() []string{
		"leased": func() []string { return []string{"--data", filepath.Join(t.TempDir(), "data")} },
		"disposable": func() []string {
			db := testserver.MariaDB(t, nil)
			url := db.URL(db.NewDatabase(t)) + "?layout=worker_node"
			initWorkers(t, url)
			return []string{"--data", t.TempDir(), "--workers", url}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all drivertest.Ranges
			args := args()
			lives := figure(4, 50)
			for range lives {
				s := serve(t, args...)
				last := s.awaitUID(&all)
				for n := 0; n < 6 || time.Until(uidTime(t, last.End-1)) < 4*time.Second; n++ { // a slow machine takes more
					ranges, err := s.takeOf("uid", "x", uidSecond)
					if err != nil {
						t.Fatal(err)
					}
					all.Add(ranges...)
					last = ranges[len(ranges)-1]
				}
				s.kill()
			}
			checkRanges(t, &all, int64(lives)*6*uidSecond)
		})
	}
}

// awaitUID has the server issue its first ID.
func (s *server) awaitUID(all *drivertest.Ranges) leaf.Range {
	s.t.Helper()
	var ranges []leaf.Range
	until(s.t, 10*time.Second, "serving uid", func() (err error) {
		ranges, err = s.takeOf("uid", "x", 1)
		return err
	})
	all.Add(ranges...)
	return ranges[0]
}

// uidTime returns the second in an ID of the layout uid.
func uidTime(t testing.TB, id int64) time.Time {
	t.Helper()
	layout, _ := snowflake.Preset("uid")
	p, err := layout.Decode(id)
	if err != nil {
		t.Fatal(err)
	}
	return p.Time
}

// The clock goes back an hour: while a node runs, and across its restart. No call fails
// and nothing is issued twice.
func TestUIDClockBack(t *testing.T) {
	t.Parallel()
	for ending, end := range endings {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, while running: %t", ending, running), func(t *testing.T) {
				t.Parallel()
				const part = 10 * uidSecond
				var all drivertest.Ranges
				c := nodeConfig{Workers: newRegistry(t), Data: t.TempDir(), WorkerBits: 19, Horizon: 30 * time.Minute, UID: true}
				n := startNode(t, &all, c)
				n.take(part)
				if running {
					n.skew(-time.Hour)
					time.Sleep(1500 * time.Millisecond) // it looks at the clock every second
					if _, err := n.try(part); err != nil {
						t.Fatalf("%v\n%s", err, n.output())
					}
				}
				end(n)
				c.Skew = -time.Hour
				n = startNode(t, &all, c)
				n.take(part)
				end(n)
				c.Skew = 0
				n = startNode(t, &all, c)
				n.take(part)
				end(n)
				checkRanges(t, &all, 3*part)
			})
		}
	}
}

// IDs come over all protocols, and decode correctly.
func TestUIDRoutes(t *testing.T) {
	t.Parallel()
	s := serve(t, "--data", t.TempDir())
	var all drivertest.Ranges
	first := s.awaitUID(&all).Start
	body, err := get(s.url + "/api/uid/get/order?n=3")
	var a, b, c int64
	if _, scanErr := fmt.Sscan(body, &a, &b, &c); err != nil || scanErr != nil || a <= first || b != a+1 || c != b+1 {
		t.Errorf("after %d: %q, %v", first, body, err)
	}
	want := fmt.Sprintf(`{"UID":"%d","timestamp":"%s","workerId":"0","sequence":"%d"}`, c, uidTime(t, c).Local().Format("2006-01-02 15:04:05"), c%uidSecond)
	if body, err := get(fmt.Sprintf("%s/api/uid/parse/%d", s.url, c)); err != nil || body != want {
		t.Errorf("%q, %v, want %q", body, err, want)
	}
}
