package sqlite_test

import (
	"fmt"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A digest changes with every added or removed tag and every other step, on any page of the
// listing, and not with the counters.
func TestSQLiteDigest(t *testing.T) {
	testserver.Long(t)
	tags := make([]segment.Tag, 20_000)
	for i := range tags {
		tags[i] = segment.Tag{Name: fmt.Sprintf("tag-%05d", i), MaxID: 1, Step: 10}
	}
	s := openSQLite(t, newSQLite(t, tags...))
	seen := make(map[string]string)
	digest := func() string {
		t.Helper()
		d, err := s.Digest(t.Context())
		if err != nil || d == "" {
			t.Fatalf("digest %q, %v", d, err)
		}
		return d
	}
	seen[digest()] = "all tags"
	if _, err := s.Advance(t.Context(), "tag-00007", 5); err != nil {
		t.Fatal(err)
	}
	if seen[digest()] == "" {
		t.Error("another digest after an advance")
	}
	step := int64(11)
	for _, name := range []string{"tag-00000", "tag-08191", "tag-08192", "tag-19999"} {
		if _, err := s.Alter(t.Context(), name, segment.Change{Step: &step}); err != nil {
			t.Fatal(err)
		}
		wantNew(t, seen, digest(), "another step of "+name)
		if err := s.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		wantNew(t, seen, digest(), "without "+name)
	}
	if err := s.Create(t.Context(), segment.Tag{Name: "zz", Step: 10}); err != nil {
		t.Fatal(err)
	}
	wantNew(t, seen, digest(), "with zz")
	for _, value := range []string{"1", "2"} {
		if _, err := s.Alter(t.Context(), "zz", segment.Change{Options: segment.TagOptions{"later": value}}); err != nil {
			t.Fatal(err)
		}
		wantNew(t, seen, digest(), "another option of zz, "+value)
	}
}

func wantNew(t *testing.T, seen map[string]string, digest, what string) {
	t.Helper()
	if before := seen[digest]; before != "" {
		t.Errorf("the digest of %s is that of %s", what, before)
	}
	seen[digest] = what
}
