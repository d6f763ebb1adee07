//go:build leafsabotage

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/e2e/lab/saboteurs"
)

// A sabotagedServer is a rule to break in servers, and a scenario that shows it.
type sabotagedServer struct {
	rule, what string
	scenario   string
	find       func(t *testing.T, program []string) (took time.Duration, sign error)
}

// sabotagedServers lists the broken rules that real servers soon show; the simulator has the others,
// such as rules that a second one hides: after an unconditional give-back the guard of servers that
// have issued more lifts the counter.
var sabotagedServers = []sabotagedServer{
	{"CAS", "a driver writes whatever the store holds", "Cluster/nats", onSegments("nats", "")},
	{"outcome", "a driver takes an unknown outcome for success", "Cluster/nats", onSegments("nats", "connections to the store cut")},
	{"R1 give-back", "a server gives back to another one what that does not know of", "PostgresGiveBackAfterFailOver", timed(giveBackAfterFailOver)},
	{"R2 guard", "a counter that went back is believed", "Cluster/redis-sentinel", onSegments("redis-sentinel", failedOver)},
	{"R6 share", "a ticket server deals the blocks of others as well", "Cluster/tickets", onSegments("tickets", "")},
	{"store identity", "a grant of another store is issued", "StoreEmptiedUnderServers", timed(emptiedUnderServers)},
	{"deletion", "a new tag starts below the deleted one of its name", "TagDeletedUnderServers", timed(tagDeletedUnderServers)},
	{"etcd revision", "a claim counts at once in an etcd that went back", "EtcdRestoredUnderServers", timed(etcdRestoredUnderServers)},
	{"layout table", "layouts of one name are not compared where no record has them", "WorkerNodeOtherBits", timed(workerNodeOtherBits)},
	{"two names", "an SQLite file is used under two names", "OneFileTwoNames", timed(twoNames)},
	{"unread replies", "unread replies are not copied from the buffer of the event loop", "Clients", onClients("plain")},
	{"unread replies TLS", "unread replies are not copied from a buffer that connections share", "Clients", onClients("tls")},
	{"strict stock", "a tag with strict order is served from a stock", "StrictOrder/redis", onStrict("redis")},
	{"strict joined", "callers get IDs of a call to the store that was sent before they came", "StrictOrder/redis", onStrict("redis")},
	{"strict relay", "a relay keeps IDs of a tag with strict order for later calls", "StrictOrder/redis", onStrict("redis")},
	{"strict answer", "a later call gets the IDs of a swap without an answer", "StrictOrder/redis", onStrict("redis", "answers of the store dropped", "connections to the store cut")},
	{"strict refusal", "a store grants stock of a tag with strict order", "StrictOrder/etcd", onStrict("etcd")},
	{"strict table", "the counter of a tag with strict order is where other programs take their stock", "StrictBesideJavaLeaf", timed(strictBesideJavaLeaf)},
	{"strict consent", "a store that can lose writes serves strict order without consent", "StrictWithoutConsent", timed(strictWithoutConsent)},
	{"floor", "a lease begins below what was issued before", "Leases/postgres",
		onWorkerIDs("postgres", leaseStore(labPostgres, scarce), "SIGSTOP beyond the lease, SIGCONT")},
}

// TestSabotagedServers has servers break a rule, and shows that the lab notices, by an ID that
// clients received twice.
func TestSabotagedServers(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := saboteurs.Overlay(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sabotagedServers {
		t.Run(s.rule+"/"+s.scenario, func(t *testing.T) {
			program := []string{"env", sabotageVariable + "=" + s.rule, labBuild(t, "sabotaged", "leaflab", "-overlay", overlay)}
			took, sign := s.find(t, program)
			got := labcheck.Saboteur{Rule: s.rule, What: s.what, Kind: s.scenario, Schedules: 1, Took: took}
			if sign != nil {
				got.Sign = sign.Error()
			}
			if dir := os.Getenv("LEAF_REPORT"); dir != "" {
				if err := got.Save(dir); err != nil {
					t.Error(err)
				}
			}
			if sign == nil {
				t.Fatalf("%s: not noticed in %v", s.what, took)
			}
			t.Logf("%s: noticed after %v: %v", s.what, took.Round(time.Millisecond), sign)
		})
	}
}

// timed runs a scenario that reports a duplicate ID.
func timed(scenario func(t *testing.T, program ...string) error) func(*testing.T, []string) (time.Duration, error) {
	return func(t *testing.T, program []string) (time.Duration, error) {
		begin := time.Now()
		err := scenario(t, program...)
		return time.Since(begin), err
	}
}

// twoNames has two servers draw from an SQLite file, each under a name of its own.
func twoNames(t *testing.T, program ...string) error {
	var h labcheck.History
	file := newFile(t)
	for i := range 2 {
		s := serveBy(t, slices.Concat(program, serveArgs([]string{"--store", "sqlite://" + file, "--data", filepath.Join(t.TempDir(), "data")}))...)
		for _, id := range draw(t, s, 10) {
			h.Add(labcheck.Receipt{Server: fmt.Sprint(i)}, leaf.Range{Start: id, End: id + 1})
		}
		name := filepath.Join(t.TempDir(), "ids.db")
		if err := os.Link(file, name); err != nil {
			t.Fatal(err)
		}
		file = name
	}
	return h.Unique()
}

// onSegments subjects servers of one store to a fault again and again; without a fault the broken
// rule shows by itself.
func onSegments(store, fault string) func(*testing.T, []string) (time.Duration, error) {
	return func(t *testing.T, program []string) (time.Duration, error) {
		c := newCluster(t, store, labStores[store], program...)
		defer c.finish()
		d := &deck{cluster: c}
		for i := range nemeses {
			if nemeses[i].name == fault {
				d.fit = append(d.fit, &nemeses[i])
			}
		}
		return firstTwice(t, &c.history, c.elapsed, func() { c.bout(d.deal(len(d.fit))) })
	}
}

// onStrict subjects servers with strict order on one store to faults, until the order is wrong.
func onStrict(store string, faults ...string) func(*testing.T, []string) (time.Duration, error) {
	return func(t *testing.T, program []string) (time.Duration, error) {
		c := newStrictCluster(t, store, strictStores[store], program...)
		defer c.finish()
		d := &deck{cluster: c}
		for i := range nemeses {
			if slices.Contains(faults, nemeses[i].name) {
				d.fit = append(d.fit, &nemeses[i])
			}
		}
		return firstSign(t, func() error { return c.history.Strict(labTag) }, c.elapsed, func() { c.bout(d.deal(len(d.fit))) })
	}
}

// onClients has clients use one of two servers in every way that clients do.
func onClients(server string) func(*testing.T, []string) (time.Duration, error) {
	return timed(func(t *testing.T, program ...string) error {
		c := newClientele(t, program...)
		defer c.stop()
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			_, err := c.history.Duplicates(func(r *labcheck.Receipt) bool { return r.Server == server })
			if err = errors.Join(err, c.history.Fits()); err != nil {
				return err
			}
		}
		return nil
	})
}

// onWorkerIDs has servers that lease worker IDs meet a fault again and again.
func onWorkerIDs(store string, registry func(*testing.T) *leaseRegistry, fault string) func(*testing.T, []string) (time.Duration, error) {
	return func(t *testing.T, program []string) (time.Duration, error) {
		c := newLeaseCluster(t, store, registry(t), func(string) []string { return program[1:] })
		defer func() { close(c.over); c.wg.Wait() }()
		var faults []*leaseFault
		for i := range leaseFaults {
			if leaseFaults[i].name == fault {
				faults = append(faults, &leaseFaults[i])
			}
		}
		return firstTwice(t, &c.history, c.elapsed, func() { c.strike(faults...) })
	}
}

// firstTwice has faults strike until clients have received an ID twice, and tells when they had;
// nil: not within two minutes.
func firstTwice(t *testing.T, h *labcheck.History, elapsed func() time.Duration, strike func()) (took time.Duration, sign error) {
	return firstSign(t, func() error { return h.Unique() }, elapsed, strike)
}

// firstSign has faults strike until a check fails, and tells when it did.
func firstSign(t *testing.T, check func() error, elapsed func() time.Duration, strike func()) (took time.Duration, sign error) {
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for sign == nil && took < 2*time.Minute && t.Context().Err() == nil {
			time.Sleep(100 * time.Millisecond)
			sign = check()
			took = elapsed()
		}
	}()
	for {
		select {
		case <-seen:
			return took, sign
		default:
			strike()
		}
	}
}
