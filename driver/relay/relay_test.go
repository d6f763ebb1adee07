package relay_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns the way to servers until t ends.
func open(t testing.TB, o *relay.Options, servers ...*testleaf.Server) *relay.DB {
	t.Helper()
	var urls []string
	for _, s := range servers {
		urls = append(urls, s.URL())
	}
	db, err := relay.Open(urls, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newStore(t testing.TB, tags ...segment.Tag) *kv.Store {
	t.Helper()
	store := memory.New().Store()
	for _, tag := range tags {
		if err := store.Create(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// A closing store ends its own connections, as the suites expect.
type closingStore struct {
	relay.Store
	db *relay.DB
}

func (s closingStore) Close() error { return s.db.Close() }

type closingRegistry struct {
	relay.Registry
	db *relay.DB
}

func (r closingRegistry) Close() error { return r.db.Close() }

func TestStore(t *testing.T) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		server := testleaf.Start(t, testleaf.Options{Store: newStore(t), Segment: segment.SetOptions{Options: segment.Options{MaskKeys: drivertest.MaskKeys}}})
		return drivertest.StoreBackend{
			Open: func(t testing.TB) segment.Store {
				db := open(t, nil, server)
				return closingStore{db.Store(), db}
			},
			Caps: drivertest.StoreCaps{Units: true, NoOptions: true},
		}
	})
}

func TestRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
		server := testleaf.Start(t, testleaf.Options{Registry: memory.New().Registry()})
		return drivertest.RegistryBackend{Open: func(t testing.TB) worker.Registry {
			db := open(t, nil, server)
			return closingRegistry{db.Registry(), db}
		}}
	})
}

// A server over a server over a server: however calls, changes and losses meet, no ID comes
// twice.
func TestThroughThreeServers(t *testing.T) {
	faulty := &drivertest.Faulty{Store: newStore(t, order)}
	server := testleaf.Start(t, testleaf.Options{Store: faulty})
	for range 2 {
		db := open(t, nil, server)
		server = testleaf.Start(t, testleaf.Options{Store: db.Store(), Route: db.Route})
	}
	faulty.Plan(func(c drivertest.Call) (fault drivertest.Fault) {
		if c.Seq%5 == 0 {
			fault.After = errors.New("the reply was lost")
		}
		return fault
	})
	var ranges drivertest.Ranges
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			set := segment.NewSet(open(t, nil, server).Store(), &segment.SetOptions{Options: segment.Options{Wait: time.Minute}})
			for i := range 50 {
				got, err := set.Take(t.Context(), "order", nil, 1+i*g)
				if err != nil {
					t.Error(err)
					return
				}
				ranges.Add(got...)
			}
			_ = set.Close(t.Context()) // others may have taken IDs since
		})
	}
	all.Wait()
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 1000}

// A relay serves from its stock while its upstream is away, and continues after its return.
func TestUpstreamDown(t *testing.T) {
	upstream := testleaf.Start(t, testleaf.Options{Store: newStore(t, order)})
	db := open(t, nil, upstream)
	edge := testleaf.Start(t, testleaf.Options{Store: db.Store(), Route: db.Route})
	far := open(t, nil, edge)
	client := segment.NewBuffer(far.Store(), "order", &segment.Options{MaxStock: 10})
	defer client.Close(t.Context())
	var ranges drivertest.Ranges
	take := func(n int) {
		t.Helper()
		got, err := client.Take(t.Context(), nil, n)
		if err != nil {
			t.Fatal(err)
		}
		ranges.Add(got...)
	}
	take(10)
	upstream.Stop()
	before := upstream.Calls("Advance")
	for range 40 {
		take(10)
	}
	if n := upstream.Calls("Advance"); n != before {
		t.Fatalf("the upstream was asked %d times while it was down", n-before)
	}
	upstream.Resume(t)
	for range 200 {
		take(10)
	}
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// Observe and raise at a relay move the counter at the end of the chain, and no server of the chain
// issues IDs below.
func TestObserveThroughThreeServers(t *testing.T) {
	store := newStore(t, order)
	chain := []*testleaf.Server{testleaf.Start(t, testleaf.Options{Store: store})}
	for range 2 {
		db := open(t, nil, chain[len(chain)-1])
		chain = append(chain, testleaf.Start(t, testleaf.Options{Store: db.Store(), Route: db.Route}))
	}
	last := open(t, nil, chain[2]).Store()
	if _, err := last.Advance(t.Context(), "order", 10); err != nil { // each server holds some
		t.Fatal(err)
	}
	const largest = int64(1) << 50
	tag, others, err := last.ObserveTag(t.Context(), "order", largest)
	if err != nil || tag.MaxID <= largest || others == 0 {
		t.Fatalf("got %+v, %d, %v", tag, others, err)
	}
	for i, server := range chain {
		if g, err := open(t, nil, server).Store().Advance(t.Context(), "order", 10); err != nil || g.Range.Start <= largest {
			t.Errorf("server %d: %+v, %v", i, g, err)
		}
	}
	before := maxID(t, store)
	if tag, err := last.RaiseTag(t.Context(), "order", largest); err != nil || tag.MaxID < before+largest || maxID(t, store) < tag.MaxID {
		t.Errorf("raised from %d: %+v, %v", before, tag, err)
	}
	if _, _, err := last.ObserveTag(t.Context(), "nope", 1); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("got %v", err)
	}
	if _, err := last.RaiseTag(t.Context(), "nope", 1); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("got %v", err)
	}
}

// maxID returns the counter of the tag "order".
func maxID(t testing.TB, store segment.Store) int64 {
	t.Helper()
	for tag, err := range store.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if tag.Name == order.Name {
			return tag.MaxID
		}
	}
	t.Fatal("there is no tag")
	return 0
}

// Servers in a circle issue nothing, and say why.
func TestLoop(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		// The URLs come before the servers: each server starts with a placeholder for the next one.
		stores := make([]*late, n)
		servers := make([]*testleaf.Server, n)
		for i := range n {
			stores[i] = new(late)
			servers[i] = testleaf.Start(t, testleaf.Options{
				Store: stores[i], Route: stores[i].route,
				Segment: segment.SetOptions{Options: segment.Options{Wait: 50 * time.Millisecond}},
			})
		}
		for i := range n {
			stores[i].set(open(t, nil, servers[(i+1)%n]))
		}
		last := open(t, nil, servers[0]).Store()
		var err error
		for begun := time.Now(); time.Since(begun) < 20*time.Second; {
			if _, err = last.Advance(t.Context(), "order", 0); err == nil {
				t.Fatalf("%d servers in a circle issued IDs", n)
			}
			if errors.Is(stores[0].lastErr(), relay.ErrLoop) {
				break
			}
		}
		if !errors.Is(stores[0].lastErr(), relay.ErrLoop) {
			t.Errorf("%d servers in a circle: %v, want %v", n, stores[0].lastErr(), relay.ErrLoop)
		}
		// A call runs around the circle once. The servers also list tags by themselves.
		calls := servers[0].Calls("ListTags")
		for _, err := range open(t, nil, servers[0]).Store().Tags(t.Context()) {
			if !errors.Is(err, leaf.ErrUnsupported) {
				t.Errorf("tags of %d servers in a circle: %v", n, err)
			}
		}
		if calls = servers[0].Calls("ListTags") - calls; calls > 20 {
			t.Errorf("the call went round %d servers %d times", n, calls)
		}
	}
}

func TestRegistryLoop(t *testing.T) {
	registries := make([]*lateRegistry, 3)
	servers := make([]*testleaf.Server, 3)
	for i := range servers {
		registries[i] = new(lateRegistry)
		servers[i] = testleaf.Start(t, testleaf.Options{Registry: registries[i]})
	}
	for i := range servers {
		registries[i].Registry = open(t, nil, servers[(i+1)%3]).Registry()
	}
	for range 3 {
		if _, err := registries[0].Load(t.Context(), 7); !errors.Is(err, leaf.ErrUnsupported) {
			t.Errorf("load in a circle: %v", err)
		}
	}
	if n := servers[0].Calls("Load"); n != 3 {
		t.Errorf("the call went round %d times, want 3", n)
	}
}

// A token is shown, and a new one in the file is taken up; neither is in an error.
func TestToken(t *testing.T) {
	token, expired := access.NewToken(), access.NewToken()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gate := testgate.New(t, access.Options{}, "tokens:\n  - name: edge\n    hash: "+access.HashToken(token)+"\n    take: [order]\n    rights: [worker]\n")
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t, order), Registry: memory.New().Registry(), Gate: gate})
	for name, o := range map[string]*relay.Options{"none": nil, "wrong": {Token: expired}} {
		_, err := open(t, o, server).Store().Advance(t.Context(), "order", 0)
		if err == nil || errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("%s token: %v", name, err)
		}
	}
	db := open(t, &relay.Options{Token: token}, server)
	if _, err := db.Store().Advance(t.Context(), "order", 0); err != nil {
		t.Error(err)
	}
	if _, err := db.Registry().List(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Store().Delete(t.Context(), "order"); err == nil {
		t.Error("a token without the right deleted a tag")
	}
	write(file, token+"\n")
	if _, err := open(t, &relay.Options{TokenFile: file}, server).Store().Advance(t.Context(), "order", 0); err != nil {
		t.Error(err)
	}
	if _, err := open(t, &relay.Options{TokenFile: file + "x"}, server).Store().Advance(t.Context(), "order", 0); err == nil {
		t.Error("a missing file was not an error")
	}
}

// A frozen or absent server costs no call while another one answers.
func TestSeveralServers(t *testing.T) {
	store := newStore(t, order)
	servers := []*testleaf.Server{testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})}
	s := open(t, nil, servers...).Store()
	var ranges drivertest.Ranges
	take := func() string {
		t.Helper()
		g, err := s.Advance(t.Context(), "order", 10)
		if err != nil {
			t.Fatal(err)
		}
		ranges.Add(g.Range)
		return g.Source
	}
	at := func(host string) *testleaf.Server {
		for _, server := range servers {
			if server.Host() == host {
				return server
			}
		}
		t.Fatalf("no server %s", host)
		return nil
	}
	first := at(take())
	first.Hold()
	second := at(take())
	if second == first {
		t.Fatal("a frozen server answered")
	}
	calls := first.Calls("Advance")
	second.Stop()
	for range 20 {
		if third := at(take()); third == first || third == second {
			t.Fatal("a server answered that is frozen or gone")
		}
	}
	if n := first.Calls("Advance"); n > calls+1 {
		t.Errorf("the frozen server was asked %d times more", n-calls)
	}
	first.Release()
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, urls := range [][]string{nil, {""}, {"host:8080"}, {"ftp://h"}, {"http://"}, {"http://h/path"}, {"http://u:p@h"}, {"http://h?x=1"}, {"http://ok", "nope"}} {
		if db, err := relay.Open(urls, nil); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%q: %v, %v", urls, db, err)
		}
	}
}

// A listing of more tags than a page has them all, once.
func TestListsInPages(t *testing.T) {
	var tags []segment.Tag
	for i := range 2*leafconn.TagPage + 1 {
		tags = append(tags, segment.Tag{Name: fmt.Sprint("tag-", i), MaxID: 1, Step: 10})
	}
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t, tags...)})
	seen := make(map[string]int)
	for tag, err := range open(t, nil, server).Store().Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		seen[tag.Name]++
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is listed %d times", name, n)
		}
	}
	if len(seen) != len(tags) || server.Calls("ListTags") != 3 {
		t.Errorf("%d tags of %d in %d calls, want 3", len(seen), len(tags), server.Calls("ListTags"))
	}
}

// Strict order is served again within seconds of the freeze of a server, by the other one.
func TestStrictBesideAFrozenServer(t *testing.T) {
	strict := order
	strict.Options = segment.TagOptions{segment.OptionOrder: segment.OrderStrict}
	store := newStore(t, strict)
	servers := []*testleaf.Server{testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})}
	set := segment.NewSet(open(t, nil, servers...).Store(), &segment.SetOptions{Options: segment.Options{Wait: segment.DefaultCallTimeout}})
	t.Cleanup(func() { _ = set.Close(t.Context()) })
	if _, err := set.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	frozen := servers[0]
	if servers[1].Calls("Advance") > frozen.Calls("Advance") {
		frozen = servers[1]
	}
	frozen.Hold()
	defer frozen.Release()
	if _, err := set.Next(t.Context(), "order"); err != nil {
		t.Error(err)
	}
}
