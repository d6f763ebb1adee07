package issuer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
)

// A counter is a source that counts its calls.
type counter struct{ calls int }

func (c *counter) Next(context.Context, string) (int64, error) {
	c.calls++
	return int64(c.calls), nil
}

func (c *counter) Take(_ context.Context, _ string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	c.calls++
	return append(dst, leaf.Range{Start: 100, End: 100 + int64(n)}), nil
}

func newIssuer() (*issuer.Issuer, *counter) {
	source := new(counter)
	return issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(source)}, &issuer.Options{MaxBatch: 50}), source
}

func TestNext(t *testing.T) {
	tests := []struct {
		name, scheme, key string
		want              error
	}{
		{"named scheme", "segment", "order", nil},
		{"no scheme is segment", "", "order", nil},
		{"scheme that is not enabled", "snowflake", "order", issuer.ErrSchemeOff},
		{"scheme in capitals", "SEGMENT", "order", issuer.ErrSchemeOff},
		{"no key", "segment", "", leaf.ErrInvalid},
		{"key of 129 characters", "segment", strings.Repeat("é", 129), leaf.ErrInvalid},
		{"key of 128 characters", "segment", strings.Repeat("é", 128), nil},
		{"key with NUL", "segment", "a\x00", leaf.ErrInvalid},
		{"key not UTF-8", "segment", "a\xff", leaf.ErrInvalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ids, source := newIssuer()
			id, err := ids.Next(t.Context(), tt.scheme, tt.key)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Fatalf("Next: %v, want %v", err, tt.want)
			}
			if want := map[bool]int{true: 1, false: 0}[err == nil]; source.calls != want || id.Number != int64(want) {
				t.Errorf("ID %v after %d calls of the source, want %d", id, source.calls, want)
			}
			if err := ids.Check(tt.scheme, tt.key); !errors.Is(err, tt.want) {
				t.Errorf("Check: %v, want %v", err, tt.want)
			}
		})
	}
}

func TestTake(t *testing.T) {
	for _, n := range []int{-1, 0, 51, 1 << 40} {
		ids, source := newIssuer()
		got, err := ids.Take(t.Context(), "", "order", n)
		if !errors.Is(err, leaf.ErrInvalid) || source.calls != 0 || len(got.Ranges) != 0 {
			t.Errorf("Take(%d): %v, %v after %d calls, want ErrInvalid and none", n, got, err, source.calls)
		}
		if err != nil && !strings.Contains(err.Error(), "1 to 50") {
			t.Errorf("Take(%d): %q does not tell the limit", n, err)
		}
	}
	for _, n := range []int{1, 50} {
		ids, _ := newIssuer()
		got, err := ids.Take(t.Context(), "", "order", n)
		want := issuer.IDs{Ranges: []leaf.Range{{Start: 100, End: 100 + int64(n)}}}
		if diff := cmp.Diff(want.Ranges, got.Ranges); err != nil || diff != "" {
			t.Errorf("Take(%d): %v %s", n, err, diff)
		}
	}
}

// All yields the IDs, each time, and ends with its caller.
func TestAll(t *testing.T) {
	ids := issuer.IDs{Ranges: []leaf.Range{{Start: 8, End: 11}, {Start: 3, End: 4}}}
	for range 2 {
		var got []byte
		for id := range ids.All() {
			got = append(id.Append(got), ' ')
		}
		if string(got) != "8 9 10 3 " {
			t.Errorf("%q", got)
		}
	}
	uuids, err := issuer.UUIDs{}.Take(t.Context(), "v4", 3)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for id := range uuids.All() {
		if n++; len(id.Text) != 36 {
			t.Error(id)
		}
		if n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d UUIDs", n)
	}
}

func TestDefaultMaxBatch(t *testing.T) {
	ids := issuer.New(nil, nil)
	if err := ids.CheckCount(issuer.DefaultMaxBatch); err != nil {
		t.Error(err)
	}
	if err := ids.CheckCount(issuer.DefaultMaxBatch + 1); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("one more: %v, want ErrInvalid", err)
	}
}
