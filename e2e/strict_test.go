package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/leaf-id/leaf/client"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
	loadgen "github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// TestStrictOrder has five servers and a relay serve a tag with strict order, from stores that lose
// no acknowledged write, to more than 20 clients of five protocols, while faults strike. A call that
// begins after another one has ended gets larger IDs, on the same server or another.
func TestStrictOrder(t *testing.T) {
	for name, store := range strictStores {
		t.Run(name, func(t *testing.T) {
			testserver.Long(t)
			t.Parallel()
			c := newStrictCluster(t, name, store, leafBinary)
			c.runStrict()
			c.checkStrict()
		})
	}
}

// A strictStore is a store that loses no acknowledged write under any fault.
type strictStore struct {
	start func(t *testing.T) *labStore
	order string
}

var strictStores = map[string]strictStore{
	"sqlite":        {labSQLite, segment.OrderStrict},
	"etcd":          {labEtcd, segment.OrderStrict},
	"redis":         {labRedis, segment.OrderStrict},
	"galera":        {labGalera, segment.OrderStrict},
	"mariadb-pair":  {labMariaDBSynced, segment.OrderStrictLossy},
	"postgres-pair": {labPostgresSynced, segment.OrderStrictLossy},
}

func newStrictCluster(t *testing.T, name string, s strictStore, program ...string) *cluster {
	c := newMembers(t, name, s.start, program, func(c *cluster) {
		leafCommand(t, "tag", "create", labTag, "--order", s.order, "--store", c.store.admin)
	})
	c.result.Scheme = "strict order"
	for range 5 {
		c.join()
	}
	for _, m := range c.members {
		for _, form := range []strictForm{{"resp", 100, 1, 0}, {"v1", 1, 1, 300 * time.Millisecond}, {"api", 1, 1, time.Second}, {"grpc-port", 1, 20, 50 * time.Millisecond}} {
			c.strictClient(form, m)
		}
	}
	fronts := []string{c.members[0].front.addr, c.members[1].front.addr}
	c.joinAt("leaf://"+strings.Join(fronts, ","), fronts...)
	relay := c.members[len(c.members)-1]
	c.strictClient(strictForm{"v1", 1, 1, 0}, relay)
	c.strictClient(strictForm{"resp", 100, 1, 0}, relay)
	c.strictSDK(4, c.members...)
	return c
}

// A strictForm is how a client calls: by a protocol, with so many calls at once, for one ID or for a
// random number of IDs up to most. It pauses between its calls, at most: clients that do not, call in
// step with the answers of their server, and none of them comes while a call is on its way back.
type strictForm struct {
	protocol string
	calls    int
	most     int
	pause    time.Duration
}

// strictClient takes IDs from whichever life a member is in.
func (c *cluster) strictClient(form strictForm, m *member) {
	name := fmt.Sprintf("%s@%d", form.protocol, m.id)
	c.loop(name, func(rng *rand.Rand) {
		l := m.now.Load()
		conn := l.target(form.protocol).Open()
		defer conn.Close()
		for m.now.Load() == l && !c.ended() {
			calls := make([]*loadgen.Call, form.calls)
			for i := range calls {
				calls[i] = &loadgen.Call{Key: labTag, Count: 1 + rng.IntN(form.most)}
			}
			r := labcheck.Receipt{Server: l.name, Client: name, Begin: c.elapsed()}
			loadgen.Do(context.Background(), conn, calls)
			r.End = c.elapsed()
			if c.notePipeline(r, calls) > 0 {
				time.Sleep(20 * time.Millisecond)
			} else if form.pause > 0 {
				time.Sleep(time.Duration(manyOrFew(rng, int(form.pause))))
			}
		}
	})
}

// strictSDK has callers take IDs through one Go client of some members.
func (c *cluster) strictSDK(callers int, members ...*member) {
	var hosts []string
	for _, m := range members {
		hosts = append(hosts, m.front.addr)
	}
	ids, err := sdk.New("http://"+strings.Join(hosts, ","), nil)
	c.must("open a client", err)
	c.closed = append(c.closed, func() { _ = ids.Close(context.Background()) })
	for i := range callers {
		name := fmt.Sprintf("sdk-%d", i)
		way := ways(ids, labTag, 10)[i%4]
		c.loop(name, func(*rand.Rand) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			r := labcheck.Receipt{Space: labTag, Client: name, Begin: c.elapsed()}
			got, err := way(ctx)
			if r.End = c.elapsed(); err != nil {
				c.fail(r, 1, err)
				time.Sleep(20 * time.Millisecond)
				return
			}
			c.history.Add(r, got)
		})
	}
}

// strictCalls returns how many calls a scenario needs answered. LEAF_CALLS=1700000 makes them 10
// million over all stores.
func strictCalls() int64 {
	if n, err := strconv.ParseInt(os.Getenv("LEAF_CALLS"), 10, 64); err == nil {
		return n
	}
	return figure[int64](3_000, 150_000)
}

// runStrict has one bout of faults after the other, until enough have struck and enough calls have
// been answered.
func (c *cluster) runStrict() {
	c.awaitServed()
	deck, faults, calls := newDeck(c), figure(3, 15), strictCalls()
	for deck.dealt < faults || c.history.Answered() < calls {
		c.bout(deck.deal(1 + c.rng.IntN(2)))
		c.pause(time.Second)
		c.t.Logf("%v %d calls answered", c.elapsed().Round(time.Millisecond), c.history.Answered())
	}
	c.well = c.elapsed()
	c.awaitServed()
	c.finish()
}

// checkStrict looks at all that the clients received, and saves the result.
func (c *cluster) checkStrict() {
	pieces, wrong := c.history.StrictPieces(labTag, 20, 1000)
	err := errors.Join(c.history.Strict(labTag), wrong, c.history.Fits())
	r, h := &c.result, c.history.Result(0, c.well, c.clients...)
	r.Answered, r.Clients, r.Ranges, r.IDs, r.Calls, r.Failed, r.Silence = h.Answered, h.Clients, h.Ranges, h.IDs, h.Calls, h.Failed, h.Silence
	r.Took = c.elapsed()
	r.Duplicates, _ = c.history.Duplicates(nil)
	if err != nil {
		r.Error = err.Error()
		c.t.Error(err)
	}
	c.t.Logf("%s: %d faults, %d answered calls of %d clients in %v, %d ranges (porcupine: %d), %d IDs, %d of %d calls failed, longest silence %v, seed %d, struck: %v",
		r.Store, r.Strikes(), r.Answered, r.Clients, r.Took.Round(time.Second), r.Ranges, pieces, r.IDs, r.Failed, r.Calls,
		r.Silence.Round(time.Millisecond), r.Seed, slices.Sorted(maps.Keys(r.Nemeses)))
	if dir := os.Getenv("LEAF_REPORT"); dir != "" {
		c.must("report", r.Save(dir))
	}
}

// labMariaDBSynced is a primary that waits for its replica before it commits, so a fail-over to a
// replica that has done all of that loses nothing.
func labMariaDBSynced(t *testing.T) *labStore {
	s, p := mariaDBPairStore(t, testserver.MariaDBPairOptions{AfterSync: true, Timeout: time.Hour})
	s.loss, s.restore = nil, nil
	s.holes[restored] = "as mariadb"
	s.faults[failedOver] = labFault{func() error {
		if err := p.Primary.Kill(); err != nil {
			return err
		}
		p.AwaitApplied(t)
		p.Replica.Exec(t, "", "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'", "SET GLOBAL rpl_semi_sync_master_timeout = 3600000",
			"SET GLOBAL rpl_semi_sync_master_enabled = 1")
		p.Promote(t)
		return nil
	}, func() error { p.SwitchRoles(t); return nil }}
	return s
}

// labPostgresSynced is a primary that waits for its standby.
func labPostgresSynced(t *testing.T) *labStore {
	s, p := postgresPairStore(t)
	for _, server := range []*testserver.PostgresServer{p.Primary, p.Standby} {
		server.Exec(t, "postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'",
			"ALTER SYSTEM SET wal_retrieve_retry_interval = '100ms'", // else no commit for 5 s after a restart of the primary
			"SELECT pg_reload_conf()")
	}
	s.loss, s.restore = nil, nil
	s.holes[restored] = "as postgres"
	s.faults[failedOver] = labFault{func() error { p.FailOver(t); return nil }, func() error { p.SwitchRoles(t); return nil }}
	return s
}

// Java Leaf on the same store cannot take IDs of a tag with strict order: it reports an error.
func TestStrictBesideJavaLeaf(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	if err := strictBesideJavaLeaf(t, leafBinary); err != nil {
		t.Error(err)
	}
}

func strictBesideJavaLeaf(t *testing.T, program ...string) error {
	database := mariadb.NewDatabase(t)
	url := mariadb.URL(database)
	leafCommand(t, "init", "--store", url)
	s := serveBy(t, slices.Concat(program, serveArgs([]string{"--store", url}))...)
	leafCommand(t, "tag", "create", sampleTag, "--order", segment.OrderStrictLossy, "--server", s.url)
	first := s.next(sampleTag)
	java := &javaLeaf{db: openDB(t, database), tag: sampleTag, step: 1000}
	start, end, err := java.load(t.Context())
	if err == nil {
		return fmt.Errorf("after %d of our server, Java Leaf issues %d to %d of a tag with strict order", first, start, end)
	}
	if next := s.next(sampleTag); next != first+1 {
		t.Errorf("%d after %d", next, first)
	}
	return nil
}

// A store that can lose writes serves no tag with strict order unless the operator has consented:
// after a fail-over that lost writes, a server without a memory of them would issue lower IDs.
func TestStrictWithoutConsent(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	if err := strictWithoutConsent(t, leafBinary); err != nil {
		t.Error(err)
	}
}

func strictWithoutConsent(t *testing.T, program ...string) error {
	pair, url, _ := newPair(t, impatient)
	leafCommand(t, "init", "--store", url)
	leafCommand(t, "tag", "create", labTag, "--order", segment.OrderStrict, "--store", url)
	pair.CatchUp(t)
	start := func() *server { return serveBy(t, slices.Concat(program, serveArgs([]string{"--store", url}))...) }
	var h labcheck.History
	began := time.Now()
	take := func(s *server, calls int) {
		for range calls {
			r := labcheck.Receipt{Space: labTag, Server: s.url, Begin: time.Since(began)}
			until(t, 20*time.Second, "answered", func() error {
				ranges, err := s.takeOf("segment", labTag, 10)
				if r.End = time.Since(began); err == nil {
					h.Add(r, ranges...)
				}
				if err != nil && strings.Contains(err.Error(), "UNSUPPORTED") {
					err = nil
				}
				return err
			})
		}
	}
	old := start()
	take(old, 5)
	pair.Break(t)
	take(old, 20)
	signalAll(t, []*server{old}, syscall.SIGSTOP)
	failOver(t, pair)
	take(start(), 5)
	if h.Answered() > 0 {
		return cmp.Or(h.Strict(labTag), errors.New("a store that can lose writes serves strict order, and the fail-over lost none"))
	}
	return nil
}
