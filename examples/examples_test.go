package examples_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"entgo.io/ent"
	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/examples/entid"
	"github.com/leaf-id/leaf/examples/fenced"
	"github.com/leaf-id/leaf/examples/gormid"
	"github.com/leaf-id/leaf/examples/shardid"
	"github.com/leaf-id/leaf/examples/sqlcid"
	"github.com/leaf-id/leaf/worker"
)

// A counter stands for client.Client.Tag.
type counter struct{ last int64 }

func (c *counter) Next(context.Context) (int64, error) { c.last++; return c.last, nil }
func (c *counter) Take(context.Context, []leaf.Range, int) ([]leaf.Range, error) {
	return nil, errors.ErrUnsupported
}

// A mutation is one of a schema whose ID is an int64.
type mutation struct {
	ent.Mutation
	id int64
}

func (m *mutation) Op() ent.Op        { return ent.OpCreate }
func (m *mutation) ID() (int64, bool) { return m.id, m.id != 0 }
func (m *mutation) SetID(id int64)    { m.id = id }

func TestEnt(t *testing.T) {
	saved := ent.MutateFunc(func(_ context.Context, m ent.Mutation) (ent.Value, error) { return m.(*mutation).id, nil })
	hooked := entid.Hook(&counter{last: 41})(saved)
	for given, want := range map[int64]int64{0: 42, 7: 7} {
		if got, err := hooked.Mutate(t.Context(), &mutation{id: given}); err != nil || got != want {
			t.Errorf("got %v, %v, want %d", got, err, want)
		}
	}
}

type queries struct{ got sqlcid.CreateOrderParams }

func (q *queries) CreateOrder(_ context.Context, arg sqlcid.CreateOrderParams) error {
	q.got = arg
	return nil
}

func TestSQLC(t *testing.T) {
	q := new(queries)
	id, err := sqlcid.Orders{Queries: q, IDs: new(counter)}.Create(t.Context(), "tea")
	if err != nil || id != 1 || q.got != (sqlcid.CreateOrderParams{ID: 1, Item: "tea"}) {
		t.Errorf("got %d, %v, %+v", id, err, q.got)
	}
}

// Both libraries issue under a leased worker ID, and stop with the lease.
func TestFenced(t *testing.T) {
	for name, make := range map[string]func(int64) (func() (int64, error), func(int64) time.Time, error){
		"snowflake": fenced.Snowflake, "sonyflake": fenced.Sonyflake,
		"sonyflake v2": fenced.SonyflakeV2(func(worker int) (fenced.Flake, error) { return &flake{worker: worker}, nil }),
	} {
		stopped := 0
		u := &fenced.User{Make: make, OnStop: func(error) { stopped++ }}
		if _, err := u.Next(); !errors.Is(err, fenced.ErrStopped) {
			t.Errorf("%s without a lease: %v", name, err)
		}
		u.Begin(worker.Unfenced(5, time.Time{}, time.Time{}))
		seen := map[int64]bool{}
		for range 100 {
			id, err := u.Next()
			if err != nil || seen[id] {
				t.Fatalf("%s: %d, %v", name, id, err)
			}
			seen[id] = true
		}
		if end := u.Seal(errors.New("lost")); time.Since(end).Abs() > time.Minute || stopped != 1 {
			t.Errorf("%s: sealed at %v, told %d times", name, end, stopped)
		}
		if _, err := u.Next(); !errors.Is(err, fenced.ErrStopped) {
			t.Errorf("%s after its lease: %v", name, err)
		}
		u.Begin(worker.Unfenced(5, time.Now().Add(time.Hour), time.Time{}))
		if _, err := u.Next(); !errors.Is(err, fenced.ErrStopped) {
			t.Errorf("%s before its floor: %v", name, err)
		}
	}
}

// A flake issues like version 2 of sonyflake: 10 ms, 8 bits of a sequence, 16 of a worker ID.
type flake struct {
	worker         int
	elapsed, count int64
}

var flakesBegin = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

func (f *flake) NextID() (int64, error) {
	if now := int64(time.Since(flakesBegin) / (10 * time.Millisecond)); now > f.elapsed {
		f.elapsed, f.count = now, -1
	}
	f.count++
	return f.elapsed<<24 | f.count<<16 | int64(f.worker), nil
}

func (f *flake) ToTime(id int64) time.Time {
	return flakesBegin.Add(time.Duration(id>>24) * 10 * time.Millisecond)
}

func TestFencedFails(t *testing.T) {
	want := errors.New("no such machine")
	u := &fenced.User{Make: fenced.SonyflakeV2(func(int) (fenced.Flake, error) { return nil, want })}
	u.Begin(worker.Unfenced(5, time.Time{}, time.Time{}))
	if _, err := u.Next(); !errors.Is(err, fenced.ErrStopped) || !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}

// An exhausted generator has no IDs.
type exhausted struct{ counter }

func (exhausted) Next(context.Context) (int64, error) { return 0, leaf.ErrExhausted }

func TestSharding(t *testing.T) {
	var failed error
	next := shardid.Generator(&counter{last: 41}, func(err error) { failed = err })
	if a, b := next(0), next(63); a != 42 || b != 43 || failed != nil {
		t.Errorf("got %d, %d, %v", a, b, failed)
	}
	next = shardid.Generator(&exhausted{}, func(err error) { failed = err })
	if id := next(0); id != 0 || !errors.Is(failed, leaf.ErrExhausted) {
		t.Errorf("without an ID: %d, %v", id, failed)
	}
}

// A keeper gives the worker ID, and takes it back.
func TestFencedByKeeper(t *testing.T) {
	u := &fenced.User{Make: fenced.Snowflake}
	keeper, err := worker.NewKeeper(memory.NewRegistry(), &worker.Options{LeaseUsers: []worker.LeaseUser{u}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- keeper.Run(ctx) }()
	for _, err = u.Next(); err != nil; _, err = u.Next() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := u.Next(); !errors.Is(err, fenced.ErrStopped) {
		t.Errorf("after the keeper: %v", err)
	}
}

type order struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false"`
	Item string
}

func TestGorm(t *testing.T) {
	db, err := gorm.Open(tests.DummyDialector{}, &gorm.Config{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := gormid.Register(db, &counter{last: 41}); err != nil {
		t.Fatal(err)
	}
	one, many := order{Item: "tea"}, []*order{{Item: "a"}, {ID: 7}, {Item: "b"}}
	for _, rows := range []any{&one, &many} {
		if err := db.Create(rows).Error; err != nil {
			t.Fatal(err)
		}
	}
	if one.ID != 42 || many[0].ID != 43 || many[1].ID != 7 || many[2].ID != 44 {
		t.Errorf("got %+v, %+v, %+v, %+v", one, *many[0], *many[1], *many[2])
	}
}
