package e2e

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/mask"
)

// Keys of masks.
const (
	rightKey = "0f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210"
	wrongKey = "1f1e2d3c4b5a69788796a5b4c3d2e1f00123456789abcdeffedcba9876543210"
)

const (
	maskTag   = "code"
	maskLast  = 1_000_000 // the end of the domain
	maskFirst = maskLast - 10_000
)

// TestMasks has clients of all protocols take the last numbers of a domain from two servers with the
// key and a relay without it. Each number is that of one position, and none is a position itself.
// Without kills all numbers come, and then the error OVERFLOW.
func TestMasks(t *testing.T) {
	for _, kills := range []bool{false, true} {
		t.Run(fmt.Sprintf("kills: %v", kills), func(t *testing.T) {
			t.Parallel()
			m := newMasks(t, kills)
			for i := range m.servers {
				m.clients(i)
			}
			take := sdkNumbers(t, m.behind...)
			m.client("the library", func(n int) ([]leaf.Range, error) {
				got, err := take(maskTag, "", n)
				return got.ranges, err
			})
			if kills {
				m.killInTurn()
			}
			m.running.Wait()
			if len(m.seen) > maskLast-maskFirst || !kills && len(m.seen) != maskLast-maskFirst {
				t.Errorf("%d numbers", len(m.seen))
			}
			t.Logf("%d numbers, calls by client: %v", len(m.seen), m.calls)
		})
	}
}

// masks are servers of a tag with a mask, and what their clients got.
type masks struct {
	t       *testing.T
	store   string
	mask    *mask.Mask
	servers []*maskServer // the last one is the relay

	// Addresses for the relay and the library. Of several they ask a second one after 0.1 s, and drop
	// the later numbers.
	behind  []string
	running sync.WaitGroup
	kills   atomic.Bool // calls may fail
	ended   atomic.Bool // the domain is used up

	mu    sync.Mutex
	seen  map[int64]string // who got the number
	calls map[string]int
}

type maskServer struct {
	*server
	addr, grpc, resp string
	start            func() *server
}

func newMasks(t *testing.T, both bool) *masks {
	m := &masks{t: t, store: "sqlite:" + filepath.Join(t.TempDir(), "leaf.db"), seen: map[int64]string{}, calls: map[string]int{}}
	m.mask = newMask(t, rightKey)
	leafCommand(t, "init", "--store", m.store)
	a, b := m.serve(m.store, rightKey), m.serve(m.store, rightKey)
	if m.behind = []string{a.addr}; both {
		m.behind = append(m.behind, b.addr)
	}
	m.serve("leaf://"+strings.Join(m.behind, ","), "")
	leafCommand(t, "tag", "create", maskTag, "--mask", "k1:10^6", "--form", "C{n:6}", "--start", fmt.Sprint(maskFirst), "--server", a.url)
	return m
}

func newMask(t *testing.T, text string) *mask.Mask {
	key, err := mask.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	domain, err := mask.ParseDomain("10^6")
	if err != nil {
		t.Fatal(err)
	}
	m, err := mask.New(key, domain, maskTag)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// serve starts a server; without a key it knows no name of one.
func (m *masks) serve(store, key string) *maskServer {
	s := &maskServer{addr: loopback(freePort(m.t)), grpc: loopback(freePort(m.t)), resp: loopback(freePort(m.t))}
	keys := ""
	if key != "" {
		keys = ", mask_keys: {k1: 'env:MASK_KEY'}"
	}
	file := "segment: {wait: 15s, call_timeout: 15s" + keys + "}\nsnowflake: {enable: false}\n" // a busy machine loses no number
	command := []string{"env", "MASK_KEY=" + key, leafBinary, "serve", "--listen", s.addr, "--grpc", s.grpc, "--resp", s.resp,
		"--config", config(m.t, "leaf.yaml", file), "--store", store, "--data", filepath.Join(m.t.TempDir(), "data")}
	s.start = func() *server { return serveBy(m.t, command...) }
	s.server = s.start()
	m.servers = append(m.servers, s)
	return s
}

// clients starts clients of a server: one for each way to ask for numbers.
func (m *masks) clients(i int) {
	s := m.servers[i]
	name := func(way string) string { return fmt.Sprint(way, " of ", i) }
	for way, take := range map[string]numberCall{
		"v1": v1Numbers(s.addr), "v1 text": v1Text(s.addr), "connect": rpcNumbers("http://"+s.addr, false),
		"grpc": rpcNumbers("http://"+s.addr, true), "grpc port": rpcNumbers("http://"+s.grpc, true),
	} {
		m.client(name(way), func(n int) ([]leaf.Range, error) {
			got, err := take(maskTag, "", n)
			return got.ranges, err
		})
	}
	for way, call := range map[string]func(n int) request{
		"java": func(n int) request { return route("segment", maskTag, n) },
		"incr": func(int) request { return increment(maskTag, 1) },
		"next": func(n int) request { return next("segment", maskTag, n) },
	} {
		addr := s.resp
		if way == "java" {
			addr = s.addr
		}
		m.client(name(way), func(n int) ([]leaf.Range, error) { return askOnce(addr, call(n)) })
	}
	m.client(name("form"), func(n int) ([]leaf.Range, error) { return v1Forms(s.addr, n) })
	m.client(name("tinyid"), func(n int) ([]leaf.Range, error) { return tinyIDs(s.addr, n) })
	m.client(name("tinyid simple"), func(n int) ([]leaf.Range, error) { return tinyIDsSimple(s.addr, n) })
}

// v1Forms takes texts of the form, and returns the numbers in them.
func v1Forms(addr string, n int) ([]leaf.Range, error) {
	_, body, err := v1Get(addr, maskTag, "", n, "&form=1&format=text")
	if err != nil {
		return nil, err
	}
	texts := strings.Fields(string(body))
	for i, text := range texts {
		if len(text) != len("C000000") || text[0] != 'C' {
			return nil, fmt.Errorf("%w: %.80q", errMisfit, text)
		}
		texts[i] = text[1:]
	}
	got, err := parseNumbers("", texts, n)
	return got.ranges, err
}

// askOnce sends a request on a connection of its own.
func askOnce(addr string, q request) ([]leaf.Range, error) {
	conn, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte(q.text)); err != nil {
		return nil, err
	}
	return q.answer(bufio.NewReader(conn))
}

func tinyURL(addr, route string, n int) string {
	return fmt.Sprintf("http://%s/tinyid/id/%s?bizType=%s&batchSize=%d&token=any", addr, route, maskTag, n)
}

func tinyIDs(addr string, n int) (all []leaf.Range, err error) {
	body, err := get(tinyURL(addr, "nextId", n))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data    []int64
		Code    int
		Message string
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Code != 200 {
		return nil, fmt.Errorf("%s: %w", body, err)
	}
	for _, id := range answer.Data {
		all = append(all, leaf.Range{Start: id, End: id + 1})
	}
	return all, nil
}

func tinyIDsSimple(addr string, n int) (all []leaf.Range, err error) {
	body, err := get(tinyURL(addr, "nextIdSimple", n))
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(strings.TrimSpace(body), ",") {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, leaf.Range{Start: id, End: id + 1})
	}
	return all, nil
}

// client takes numbers, some at a time, until the domain is used up.
func (m *masks) client(name string, take func(n int) ([]leaf.Range, error)) {
	rng := rand.New(rand.NewPCG(labSeed(m.t), uint64(len(name))))
	m.running.Go(func() {
		for {
			got, err := take(m.count(rng))
			if err == nil {
				m.note(name, got)
			}
			if err != nil && m.over(name) || m.t.Failed() {
				return
			}
			if err != nil && !m.kills.Load() && !isOverflow(err) {
				m.t.Errorf("%s: %v", name, err)
				return
			}
			time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
		}
	})
}

// count returns how many numbers a call is to have. One that reaches beyond the domain spends the last
// numbers and gets none, so it is 1 near the end.
func (m *masks) count(rng *rand.Rand) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) > (maskLast-maskFirst)*9/10 {
		return 1
	}
	return 1 + rng.IntN(5)
}

// over reports whether no number is left, and takes one otherwise.
func (m *masks) over(name string) bool {
	if m.ended.Load() {
		return true
	}
	got, err := v1Numbers(m.servers[rand.IntN(2)].addr)(maskTag, "", 1)
	if err == nil {
		m.note(name, got.ranges)
	} else if isOverflow(err) {
		m.ended.Store(true)
	}
	return m.ended.Load()
}

// killInTurn kills the servers of the store until the domain is used up.
func (m *masks) killInTurn() {
	m.kills.Store(true)
	for i := 0; !m.ended.Load() && !m.t.Failed(); i++ {
		time.Sleep(300 * time.Millisecond)
		s := m.servers[i%2]
		s.kill()
		s.server = s.start()
	}
	m.kills.Store(false)
}

func isOverflow(err error) bool { return strings.Contains(strings.ToLower(err.Error()), "overflow") }

// note takes in numbers, which must be new ones of the last positions.
func (m *masks) note(name string, got []leaf.Range) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[name]++
	for _, r := range got {
		for hidden := r.Start; hidden < r.End; hidden++ {
			n, err := m.mask.Reveal(hidden)
			if err != nil || n < maskFirst || n >= maskLast {
				m.t.Errorf("%s got %d, which hides %d: %v", name, hidden, n, err)
			}
			if other := m.seen[hidden]; other != "" {
				m.t.Errorf("%s and %s got %d", other, name, hidden)
			}
			m.seen[hidden] = name
		}
	}
}

// Servers without the key, or with another one under its name, refuse all calls and spend nothing. The
// tag does not leave them as a range, either.
func TestMaskKeys(t *testing.T) {
	m := newMasks(t, true)
	before := m.counter()
	if before != maskFirst {
		t.Errorf("the counter begins at %d", before)
	}
	for name, key := range map[string]string{"without": "", "another": wrongKey} {
		s := m.serve(m.store, key)
		_, _, v1 := v1Get(s.addr, maskTag, "", 1, "")
		_, java := askOnce(s.addr, route("segment", maskTag, 1))
		_, resp := askOnce(s.resp, increment(maskTag, 1))
		_, grpc := rpcNumbers("http://"+s.grpc, true)(maskTag, "", 2)
		for way, err := range map[string]error{"v1": v1, "java": java, "resp": resp, "grpc": grpc} {
			if err == nil || !strings.Contains(err.Error(), "key") && way != "java" || strings.Contains(err.Error(), rightKey[:8]) {
				t.Errorf("%s key, %s: %v", name, way, err)
			}
		}
		if !strings.Contains(fmt.Sprint(v1), "MASK_KEY") {
			t.Errorf("%s key: %v", name, v1)
		}
	}
	right := m.servers[0]
	for _, q := range []request{increment(maskTag, 2), increment(maskTag, 3)} {
		if got, err := askOnce(right.resp, q); err == nil {
			t.Errorf("%q: %v", q.text, got)
		}
	}
	for _, name := range []string{"nextSegmentId", "nextSegmentIdSimple"} {
		body, err := get(tinyURL(right.addr, name, 1))
		if err == nil && strings.Contains(body, "990") {
			t.Errorf("%s: %s", name, body)
		}
	}
	for _, s := range m.servers[:2] {
		_, body, err := v1Get(s.addr, maskTag, "", 2, "&contiguous=1")
		if err == nil {
			t.Errorf("two that follow one another: %s", body)
		}
	}
	if after := m.counter(); after != before {
		t.Errorf("the counter is at %d, before at %d", after, before)
	}
}

// counter returns the tag's counter, from its store.
func (m *masks) counter() (maxID int64) {
	db, err := sql.Open("sqlite", strings.TrimPrefix(m.store, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT max_id FROM leaf_strict WHERE name = ?`, maskTag).Scan(&maxID); err != nil {
		m.t.Fatal(err)
	}
	return maxID
}
