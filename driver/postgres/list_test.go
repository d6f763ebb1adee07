package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/segment"
)

// A listing holds no connection while its reader thinks, and reads no more than is
// asked for.
func TestListingHoldsNothing(t *testing.T) {
	tags := benchTags()
	for i := range 2000 {
		tags = append(tags, segment.Tag{Name: fmt.Sprintf("z-%04d", i), Step: 1})
	}
	db := postgresDB(t, postgresServer.URL(initPostgres(t, tags...)))
	db.SetMaxOpenConns(1)
	s := openPostgres(t, db)
	testListingHoldsNothing(t, s, len(tags))
}

func testListingHoldsNothing(t *testing.T, s *postgres.Store, all int) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	listed := make(map[string]bool)
	for tag, err := range s.Tags(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if listed[tag.Name] {
			t.Errorf("%s is listed twice", tag.Name)
		}
		listed[tag.Name] = true
		if len(listed) > 1 {
			continue
		}
		if _, err := s.Advance(ctx, "tag-1", 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "z-1999"); err != nil {
			t.Fatal(err)
		}
	}
	if len(listed) != all-1 || listed["z-1999"] {
		t.Errorf("%d tags listed, want %d: the last was deleted before it was read", len(listed), all-1)
	}
}

func names(t testing.TB, s segment.Store) []string {
	t.Helper()
	var all []string
	for tag, err := range s.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s@%d", tag.Name, tag.MaxID))
	}
	slices.Sort(all)
	return all
}
