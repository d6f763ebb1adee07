package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A node that stops gives nothing back to a server that lacks its grant, and has granted
// the same range to somebody else.
func TestPostgresReturnAfterFailOver(t *testing.T) {
	pair := testserver.PostgresPair(t)
	database := pair.Primary.NewDatabase(t)
	if err := initStore(t.Context(), postgresDB(t, pair.Primary.URL(database)), []segment.Tag{order}); err != nil {
		t.Fatal(err)
	}
	pair.CatchUp(t)
	pair.Break(t)
	both := pair.URL(database) + "&target_session_attrs=read-write"
	s := openPostgres(t, postgresDB(t, both))
	lost, err := s.Advance(t.Context(), "order", 50)
	if err != nil {
		t.Fatal(err)
	}
	pair.FailOver(t)
	other := openPostgres(t, postgresDB(t, both))
	theirs, err := other.Advance(t.Context(), "order", 50)
	if err != nil || theirs.Range != lost.Range {
		t.Fatalf("%+v, %v, want %v once more: nothing is tested", theirs, err, lost.Range)
	}
	for deadline := time.Now().Add(20 * time.Second); ; { // the connections to the former server are in the way at first
		_, err := s.Advance(t.Context(), "nothing", 1)
		if errors.Is(err, leaf.ErrUnknownTag) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for _, last := range []segment.Grant{
		lost,
		{Range: lost.Range, Server: lost.Server, Version: theirs.Version}, // as if both servers had had the same time
	} {
		if err := s.Return(t.Context(), "order", last, 4); err == nil {
			t.Error("a server took back what it had granted to somebody else")
		}
	}
	if next, err := other.Advance(t.Context(), "order", 1); err != nil || next.Range.Start != theirs.Range.End {
		t.Errorf("%+v, %v, want it to follow %v", next, err, theirs.Range)
	}
	if err := other.Return(t.Context(), "order", theirs, 4); err == nil {
		t.Error("a range went back that another one follows")
	}
}
