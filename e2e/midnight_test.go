package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A night is a moment at which clocks in a zone reach a day of another period, or would.
type night struct {
	tag, period, zone string
	moment            string
	old, next         string // the periods before and from then on
}

var nights = []night{
	{"year", "day", "Europe/Berlin", "2026-12-31T23:00:00Z", "2026-12-31", "2027-01-01"},
	{"jump", "day", "America/Sao_Paulo", "2018-11-04T03:00:00Z", "2018-11-03", "2018-11-04"}, // 1 o'clock follows 23:59:59
	{"again", "day", "America/Asuncion", "2024-03-24T03:00:00Z", "2024-03-23", "2024-03-23"}, // 23 o'clock follows 23:59:59
	{"back", "day", "America/St_Johns", "2010-11-07T02:31:00Z", "2010-11-07", "2010-11-06"},  // 23:01 follows 00:00:59
	{"skip", "day", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-29", "2011-12-31"},      // Samoa left the 30th out
	{"leap", "month", "Asia/Shanghai", "2024-02-29T16:00:00Z", "2024-02-01", "2024-03-01"},
	{"week", "week", "Asia/Kolkata", "2026-11-22T18:30:00Z", "2026-11-16", "2026-11-23"},
	{"fiscal", "fiscal:04-06", "Europe/London", "2026-04-05T23:00:00Z", "2025-04-06", "2026-04-06"},
}

// midnightStores are those of the test; the others of the lab serve no periods, or are those here with
// a fail-over, which may lose numbers.
var midnightStores = []string{"sqlite", "redis", "mariadb", "postgres", "etcd", "nats", "zookeeper", "galera"}

// TestMidnight has 20 clients take numbers of tags with periods from three servers and a relay while
// the periods end, all at the same moment. The zones of the servers are moved there, as a moved clock
// would do. The clock of one server is late. Each answer names the period of a moment of its call, and
// the numbers of a period increase without a gap, also for callers who take one for yesterday. With faults
// there may be gaps.
func TestMidnight(t *testing.T) {
	for i, name := range midnightStores {
		for _, faults := range []bool{false, true} {
			if !lab() && (i > 1 || faults != (name == "redis")) {
				continue
			}
			t.Run(fmt.Sprintf("%s, faults: %v", name, faults), func(t *testing.T) {
				testserver.Long(t)
				t.Parallel()
				n := newMidnight(t, labStores[name](t))
				n.pass(faults)
				n.check(faults)
			})
		}
	}
}

// lateBy is how far the clock of the last server is behind.
const lateBy = 2 * time.Second

// A midnight is servers and their clients around one moment.
type midnight struct {
	t       *testing.T
	store   *labStore
	servers []*midnightServer // the last one is the relay
	moment  time.Time         // by the clock of this machine
	start   time.Time
	history labcheck.History
	clients int
	over    atomic.Bool
	wg      sync.WaitGroup

	mu    sync.Mutex
	wrong []error
	seen  map[string]int // how many numbers of each tag and period
	late  int            // calls for an old period, which a server with the right clock had ended
}

// A midnightServer answers with numbers of the old period until first at least, and last at most, after
// the moment.
type midnightServer struct {
	*server
	addr, grpc  string
	command     []string
	first, last time.Duration
}

func newMidnight(t *testing.T, store *labStore) *midnight {
	n := &midnight{t: t, store: store, seen: map[string]int{}}
	leafCommand(t, "init", "--store", store.admin)
	dirs := []string{t.TempDir(), t.TempDir()} // of zones: right, and late
	right := n.serve(store.url, dirs[0], 0, 0)
	also := n.serve(store.url, dirs[0], 0, 0)
	n.serve(store.url, dirs[1], lateBy, lateBy)
	n.serve("leaf://"+right.addr+","+also.addr, dirs[1], 0, 0) // which does not look at a clock
	for _, night := range nights {
		leafCommand(t, "tag", "create", night.tag, "--period", night.period, "--zone", night.zone, "--store", store.admin)
	}
	n.start = time.Now()
	n.moment = n.start.Add(figure(3*time.Second, 10*time.Second)).Truncate(time.Second)
	for _, night := range nights {
		moveZone(t, dirs[0], night, n.moment)
		moveZone(t, dirs[1], night, n.moment.Add(lateBy))
	}
	t.Cleanup(n.end)
	var all []string
	for _, s := range n.servers {
		n.client(s, v1Numbers(s.addr))
		n.client(s, v1Text(s.addr))
		n.client(s, rpcNumbers("http://"+s.addr, false))
		n.client(s, rpcNumbers("http://"+s.grpc, true))
		all = append(all, s.addr)
	}
	take := sdkNumbers(t, all...)
	for range 4 {
		n.client(&midnightServer{last: lateBy}, take)
	}
	return n
}

// serve starts a server that finds its time zones in a folder.
func (n *midnight) serve(url, zones string, first, last time.Duration) *midnightServer {
	s := &midnightServer{first: first, last: last, addr: loopback(freePort(n.t)), grpc: loopback(freePort(n.t))}
	file := config(n.t, "leaf.yaml", "segment: {wait: 15s, call_timeout: 15s}\nsnowflake: {enable: false}\n") // a busy machine makes no gap
	s.command = []string{"env", "ZONEINFO=" + zones, leafBinary, "serve", "--listen", s.addr, "--grpc", s.grpc, "--config", file,
		"--store", url, "--data", filepath.Join(n.t.TempDir(), "data")}
	s.server = serveBy(n.t, s.command...)
	n.servers = append(n.servers, s)
	return s
}

// A numberCall is one call for numbers; an empty period is the present one.
type numberCall func(tag, period string, count int) (numbers, error)

// client takes numbers of all tags until the end. Some calls are for a document of the day before.
func (n *midnight) client(s *midnightServer, take numberCall) {
	n.clients++
	name := fmt.Sprint("client ", n.clients)
	rng := rand.New(rand.NewPCG(labSeed(n.t), uint64(n.clients)))
	n.wg.Go(func() {
		for !n.over.Load() {
			night, period := nights[rng.IntN(len(nights))], ""
			if rng.IntN(8) == 0 {
				period = night.old
			}
			begin := time.Now()
			got, err := take(night.tag, period, 1+rng.IntN(5))
			n.note(s, name, night, period, begin, time.Now(), got, err)
			time.Sleep(time.Duration(rng.Int64N(int64(40 * time.Millisecond))))
		}
	})
}

// note takes in an answer, and compares its period with the time of the call.
func (n *midnight) note(s *midnightServer, client string, night night, asked string, begin, end time.Time, got numbers, err error) {
	r := labcheck.Receipt{Space: night.tag + " " + got.period, Client: client, Begin: begin.Sub(n.start), End: end.Sub(n.start)}
	if err != nil {
		n.history.Fail(labcheck.Failure{Client: client, Begin: r.Begin, End: r.End, Err: err})
		return
	}
	n.history.Add(r, got.ranges...)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[r.Space]++
	isOld := got.period == night.old && begin.Before(n.moment.Add(s.last))
	isNext := got.period == night.next && !end.Before(n.moment.Add(s.first))
	if isOld && begin.After(n.moment) && night.old != night.next && asked == "" {
		n.late++
	}
	if asked != "" && got.period != asked || asked == "" && !isOld && !isNext {
		n.wrong = append(n.wrong, fmt.Errorf("%s got numbers of %q of %s (asked for %q) in a call from %v to %v after its end",
			client, got.period, night.tag, asked, begin.Sub(n.moment), end.Sub(n.moment)))
	}
}

// pass lets the moment pass.
func (n *midnight) pass(faults bool) {
	if faults {
		n.strike()
	}
	time.Sleep(time.Until(n.moment.Add(lateBy + figure(2*time.Second, 10*time.Second))))
	n.end()
}

// strike pauses a server and the store over the moment, and kills another server after it.
func (n *midnight) strike() {
	paused, killed, frozen := n.servers[0], n.servers[1], n.store.faults[storeFrozen]
	at := func(d time.Duration, do func() error) {
		time.Sleep(time.Until(n.moment.Add(d)))
		if err := do(); err != nil {
			n.t.Errorf("a fault %v after the moment: %v", d, err)
		}
	}
	at(-700*time.Millisecond, func() error { return paused.cmd.Process.Signal(syscall.SIGSTOP) })
	at(-300*time.Millisecond, frozen.do)
	at(200*time.Millisecond, frozen.undo)
	at(500*time.Millisecond, func() error { return paused.cmd.Process.Signal(syscall.SIGCONT) })
	at(time.Second, func() error { killed.kill(); return nil })
	at(1200*time.Millisecond, func() error { killed.server = serveBy(n.t, killed.command...); return nil })
}

func (n *midnight) end() {
	n.over.Store(true)
	n.wg.Wait()
}

func (n *midnight) check(faults bool) {
	ids, failed := n.history.Count()
	err := errors.Join(n.wrong[:min(3, len(n.wrong))]...)
	for _, night := range nights {
		for _, period := range slices.Compact([]string{night.old, night.next}) {
			space := night.tag + " " + period
			if n.seen[space] == 0 {
				err = errors.Join(err, fmt.Errorf("nobody took a number of %s", space))
			}
			err = errors.Join(err, n.history.Strict(space))
			if !faults {
				err = errors.Join(err, n.history.Gapless(space, 1))
			}
		}
	}
	if failed > 0 && !faults {
		err = errors.Join(err, fmt.Errorf("%d calls failed, the first with %w", failed, n.history.FirstFailure()))
	}
	if n.late == 0 && !faults { // a fault may silence it for so long
		err = errors.Join(err, errors.New("the server whose clock is late issued no number of an old period"))
	}
	if err != nil {
		n.t.Error(err)
	}
	n.t.Logf("%d clients, %d answered calls, %d numbers of %d periods, %d calls failed, %d were for the old period after its end by a right clock",
		n.clients, n.history.Answered(), ids, len(n.seen), failed, n.late)
}
