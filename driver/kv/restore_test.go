package kv_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// cellsOf returns a backup of a backend.
func cellsOf(t *testing.T, b kv.Backend) (all []kv.Cell) {
	t.Helper()
	for _, kind := range []kv.Kind{kv.Tags, kv.Periods, kv.Workers} {
		for c, err := range b.List(t.Context(), kind) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
	}
	return all
}

func TestRestore(t *testing.T) {
	ctx := t.Context()
	old := memory.NewBackend()
	db := kv.New(old, nil)
	strict := segment.TagOptions{"order": "strict"}
	tags := []segment.Tag{{Name: "a", MaxID: 1000, Step: 10}, {Name: "s", MaxID: 7, Step: 1, Options: strict},
		{Name: "gone", MaxID: 4000, Step: 10}, {Name: "wide", MaxID: 1, Step: 1, Options: segment.TagOptions{"mask": "k1:63:0123456789ab"}},
		{Name: "daily", MaxID: 1, Step: 10, Options: segment.TagOptions{"period": "day"}}}
	if err := errors.Join(db.Init(ctx, tags), db.InitRegistry(ctx), db.Store().Delete(ctx, "gone"), db.Store().Delete(ctx, "wide")); err != nil {
		t.Fatal(err)
	}
	const jump, many = 10_000_000, 20_000_000
	day, err := db.Store().AdvanceStrict(ctx, "daily", "", many)
	if err != nil {
		t.Fatal(err)
	}
	before, err := db.Store().Advance(ctx, "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	horizon := time.Now().Add(time.Minute).Truncate(time.Millisecond)
	if _, err := db.Registry().Swap(ctx, worker.Record{Worker: 3}, worker.Record{Worker: 3, Instance: worker.NewInstance(), Term: 1, Horizon: horizon}); err != nil {
		t.Fatal(err)
	}
	backup := cellsOf(t, old)
	restored := kv.New(memory.NewBackend(), nil)
	if _, err := restored.Restore(ctx, backup, 0, time.Now()); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a restore that raises nothing: %v", err)
	}
	if _, err := restored.Restore(ctx, backup, jump, time.Now()); err != nil {
		t.Fatal(err)
	}
	after, err := restored.Store().Advance(ctx, "a", 0)
	if err != nil || after.Range.Start != before.Range.End+jump || after.Store == before.Store || after.Store == "" {
		t.Errorf("a: %+v after %+v, %v", after, before, err)
	}
	if err := restored.Store().Create(ctx, segment.Tag{Name: "gone", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	if gone, err := restored.Store().Advance(ctx, "gone", 0); err != nil || gone.Range.Start < 4000 {
		t.Errorf("a tag that was deleted before: %+v, %v", gone, err)
	}
	if same, err := restored.Store().AdvanceStrict(ctx, "daily", day.Period, 1); err != nil || same.Range.Start < many+jump {
		t.Errorf("the period %s: %+v, %v", day.Period, same, err)
	}
	for tag, err := range restored.Store().Tags(ctx) {
		if err != nil || tag.Name == "s" && !tag.Options.Strict() {
			t.Errorf("%+v, %v", tag, err)
		}
	}
	if r, err := restored.Registry().Load(ctx, 3); err != nil || r.Held() || r.Horizon.Before(time.Now().Add(29*time.Minute)) {
		t.Errorf("worker 3: %+v, %v", r, err)
	}
	if _, err := restored.Restore(ctx, backup, jump, time.Now()); err == nil {
		t.Error("a store was restored over another one")
	}
}

func TestRestoreRefusesOverflow(t *testing.T) {
	old := memory.NewBackend()
	if err := kv.New(old, nil).Init(t.Context(), []segment.Tag{{Name: "end", MaxID: math.MaxInt64 - 5, Step: 1}}); err != nil {
		t.Fatal(err)
	}
	restored := kv.New(memory.NewBackend(), nil)
	if _, err := restored.Restore(context.Background(), cellsOf(t, old), 6, time.Now()); !errors.Is(err, leaf.ErrOverflow) {
		t.Errorf("%v, want an overflow", err)
	}
	if exists, err := restored.Store().Exists(t.Context()); err != nil || exists {
		t.Errorf("a failed restore left a store: %v, %v", exists, err)
	}
}
