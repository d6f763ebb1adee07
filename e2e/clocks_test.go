package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// endings are how a node ends.
var endings = map[string]func(*node){"clean": (*node).stop, "crashed": (*node).kill}

// The clock is an hour off while a node runs, right when it is started again, and then
// shows once more the very times of the first run. Java Leaf, whose clock check comes
// to nothing, issues the IDs of that hour twice.
func TestClockAnHourOff(t *testing.T) {
	t.Parallel()
	third := figure(100_000, 3_500_000)
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		for ending, end := range endings {
			t.Run(fmt.Sprintf("%v %s", off, ending), func(t *testing.T) {
				t.Parallel()
				var all drivertest.Ranges
				c := nodeConfig{Workers: newRegistry(t), Data: t.TempDir(), WorkerBits: 10, Horizon: 30 * time.Minute, Skew: off}
				start := time.Now()
				n := startNode(t, &all, c)
				n.take(third)
				end(n)
				c.Skew = 0
				n = startNode(t, &all, c)
				n.take(third)
				end(n)
				c.Skew = off - time.Since(start)
				n = startNode(t, &all, c)
				n.take(third)
				end(n)
				checkRanges(t, &all, 3*int64(third))
			})
		}
	}
}

// With a single worker ID nothing avoids the hour: the node that returns with the right clock
// reports it and issues nothing.
func TestClockAnHourOffWithOneWorker(t *testing.T) {
	t.Parallel()
	half := figure(150_000, 5_000_000)
	for ending, end := range endings {
		t.Run(ending, func(t *testing.T) {
			t.Parallel()
			var all drivertest.Ranges
			c := nodeConfig{Workers: newRegistry(t), Data: t.TempDir(), Horizon: 30 * time.Minute, Skew: time.Hour}
			start := time.Now()
			n := startNode(t, &all, c)
			n.take(half)
			end(n)
			c.Skew = 0
			n = startNode(t, &all, c)
			until(t, 5*time.Second, "refusing", func() error { // it first says that it has not asked the registry yet
				_, err := n.try(1)
				if err == nil || !strings.Contains(err.Error(), "all 1 worker IDs are in use") {
					return fmt.Errorf("it answers %v", err)
				}
				return nil
			})
			n.kill()
			c.Skew = time.Hour - time.Since(start)
			startNode(t, &all, c).take(half) // as soon as its clock has reached the end of the first run
			checkRanges(t, &all, 2*int64(half))
		})
	}
}

// The clock goes back a little across a restart, after more IDs than Java Leaf records
// the time of: it records it every 3 s, and so issues those of the last seconds twice.
func TestClockBackAcrossRestart(t *testing.T) {
	t.Parallel()
	half := figure(100_000, 12_500_000) // 3 s of IDs
	for _, back := range []time.Duration{5 * time.Millisecond, time.Second, 2900 * time.Millisecond} {
		for _, bits := range []int{10, 0} {
			for ending, end := range endings {
				t.Run(fmt.Sprintf("%v %d bits %s", back, bits, ending), func(t *testing.T) {
					if back != time.Second {
						testserver.Long(t)
					}
					t.Parallel()
					var all drivertest.Ranges
					c := nodeConfig{Workers: newRegistry(t), Data: t.TempDir(), WorkerBits: bits, Horizon: 30 * time.Minute}
					n := startNode(t, &all, c)
					n.take(half)
					end(n)
					c.Skew = -back
					n = startNode(t, &all, c)
					n.take(half)
					n.stop()
					checkRanges(t, &all, 2*int64(half))
				})
			}
		}
	}
}

// A node is killed long after its claim, and returns at once under the only worker ID: it noted
// each time ahead of its use.
func TestKilledLongAfterTheClaim(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	third := figure(70_000, 3_400_000)
	var all drivertest.Ranges
	c := nodeConfig{Workers: newRegistry(t), Data: t.TempDir(), Horizon: 30 * time.Minute}
	n := startNode(t, &all, c)
	n.take(third)
	time.Sleep(figure(4500*time.Millisecond, 20*time.Second)) // the first note reaches 4 s ahead
	n.take(third)
	n.kill()
	startNode(t, &all, c).take(third)
	checkRanges(t, &all, 3*int64(third))
}

// The clock is set while a node runs: no call fails. Then it is right again after a
// restart.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	tenth := figure(20_000, 1_250_000)
	toward2099 := time.Until(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)).Round(time.Second)
	for name, steps := range map[string][]time.Duration{
		"-5ms":      {-5 * time.Millisecond},
		"-1s":       {-time.Second},
		"-1h":       {-time.Hour},
		"+1h":       {time.Hour},
		"2099":      {toward2099},
		"strobing":  {time.Hour, -time.Hour, 3 * time.Second, -3 * time.Second, toward2099, 0, -time.Second},
		"back away": {-time.Hour, 2 * time.Hour},
	} {
		for ending, end := range endings {
			t.Run(name+" "+ending, func(t *testing.T) {
				if len(steps) == 1 && steps[0] != -time.Second {
					testserver.Long(t)
				}
				t.Parallel()
				var all drivertest.Ranges
				c := nodeConfig{Workers: newRegistry(t), Data: t.TempDir(), WorkerBits: 10, Horizon: 30 * time.Minute}
				n := startNode(t, &all, c)
				n.take(tenth)
				for i := range 8 {
					n.skew(steps[i%len(steps)])
					if _, err := n.try(tenth); err != nil {
						t.Fatalf("%v\n%s", err, n.output())
					}
					time.Sleep(figure(150*time.Millisecond, 600*time.Millisecond)) // it looks at the clock every second
				}
				end(n)
				n = startNode(t, &all, c)
				n.take(tenth)
				end(n)
				checkRanges(t, &all, 10*int64(tenth))
			})
		}
	}
}

// Where the registry has a clock of its own, a node whose clock is an hour off does not
// start at all, and says against whom.
func TestClockOffTheRegistrys(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	registries := map[string]string{
		"mariadb":   mariadb.URL(database),
		"zookeeper": newTree(t, sharedZooKeeper.get(t)).pool(),
	}
	for name, url := range registries {
		for off, want := range map[time.Duration]string{time.Hour: "ahead of", -time.Hour: "behind"} {
			var all drivertest.Ranges
			n := startNode(t, &all, nodeConfig{Workers: url, Data: t.TempDir(), WorkerBits: 10, Horizon: 30 * time.Minute, Skew: off})
			until(t, 10*time.Second, "refusing", func() error {
				_, err := n.try(1)
				if err == nil {
					t.Fatalf("%s: it issues IDs with a clock that is %v off", name, off)
				}
				if text := err.Error(); !strings.Contains(text, want) || !strings.Contains(text, "the worker registry's") {
					return err
				}
				return nil
			})
			n.kill()
		}
	}
}
