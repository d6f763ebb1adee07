package examples_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
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

// A counter takes the place of client.Client.Tag.
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
		if _, err := u.Next(); !errors.Is(err, fenced.ErrNotYet) {
			t.Errorf("%s before its floor: %v", name, err)
		}
	}
}

// Next reports a worker ID that the library refuses.
func TestFencedFails(t *testing.T) {
	for name, make := range map[string]func(int64) (func() (int64, error), func(int64) time.Time, error){
		"snowflake": fenced.Snowflake, "sonyflake": fenced.Sonyflake,
	} {
		u := &fenced.User{Make: make}
		u.Begin(worker.Unfenced(1<<16, time.Time{}, time.Time{}))
		if _, err := u.Next(); !errors.Is(err, fenced.ErrStopped) || err.Error() == fenced.ErrStopped.Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An exhausted generator has no IDs.
type exhausted struct{ counter }

func (exhausted) Next(context.Context) (int64, error) { return 0, leaf.ErrExhausted }

// A sink is a database that takes each statement.
type sink struct {
	gorm.ConnPool
	queries []string
}

func (s *sink) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	s.queries = append(s.queries, query)
	return driver.RowsAffected(1), nil
}

// An orderLine has no field for its ID: the plugin adds the column.
type orderLine struct {
	UserID int64
	Item   string
}

func TestSharding(t *testing.T) {
	db := new(sink)
	open := func(ids leaf.Generator, failed *error) *gorm.DB {
		g, err := gorm.Open(tests.DummyDialector{}, &gorm.Config{ConnPool: db, SkipDefaultTransaction: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Use(shardid.Plugin(ids, func(err error) { *failed = err }, "order_lines")); err != nil {
			t.Fatal(err)
		}
		return g
	}
	var failed error
	g := open(&counter{last: 41}, &failed)
	for _, line := range []orderLine{{7, "tea"}, {64 + 9, "cup"}} {
		if err := g.Create(&line).Error; err != nil {
			t.Fatal(err)
		}
	}
	if err := open(&exhausted{}, &failed).Create(&orderLine{7, "tea"}).Error; err != nil || !errors.Is(failed, leaf.ErrExhausted) {
		t.Errorf("without an ID: %v, told %v", err, failed)
	}
	want := []string{
		"INSERT INTO order_lines_07 (`user_id`, `item`, id) VALUES (?, ?, 42)",
		"INSERT INTO order_lines_09 (`user_id`, `item`, id) VALUES (?, ?, 43)",
		"INSERT INTO order_lines_07 (`user_id`, `item`) VALUES (?, ?)",
	}
	if !slices.Equal(db.queries, want) {
		t.Errorf("got %q", db.queries)
	}
}

// A keeper gives the worker ID, and takes it back.
func TestFencedByKeeper(t *testing.T) {
	u := &fenced.User{Make: fenced.Snowflake}
	keeper, err := worker.NewKeeper(memory.New().Registry(), &worker.Options{LeaseUsers: []worker.LeaseUser{u}})
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

// With a state file the lease covers a few seconds only: a call after a pause has the keeper extend it.
func TestFencedAfterQuiet(t *testing.T) {
	state, err := worker.OpenStateFile(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	synctest.Test(t, func(t *testing.T) {
		u := &fenced.User{Make: fenced.Snowflake}
		keeper, err := worker.NewKeeper(memory.New().Registry(), &worker.Options{LeaseUsers: []worker.LeaseUser{u}, State: state})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- keeper.Run(ctx) }()
		time.Sleep(10 * time.Second)
		for range 3 {
			if _, err := u.Next(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
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
