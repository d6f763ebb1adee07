package sqltest

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// TestStrictOnceLossy has a server that loses nothing become one that may lose writes, while no call
// is under way. The database is empty.
func (d Driver) TestStrictOnceLossy(t *testing.T, db *sql.DB, become func()) {
	tag := segment.Tag{Name: "order", MaxID: 1, Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	if err := d.Init(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	s := d.OpenStore(t, db)
	if err := s.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	if g, err := s.AdvanceStrict(t.Context(), "order", "", 1); err != nil || g.Range.Start != 1 {
		t.Fatalf("on a server that loses nothing: %+v, %v", g, err)
	}
	become()
	for deadline := time.Now().Add(20 * time.Second); ; {
		g, err := s.AdvanceStrict(t.Context(), "order", "", 1)
		switch {
		case errors.Is(err, leaf.ErrUnsupported):
			return
		case err == nil || time.Now().After(deadline): // a restart may cost calls
			t.Fatalf("on a server that may lose writes: %+v, %v, want leaf.ErrUnsupported", g, err)
		}
	}
}
