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
	return issuer.New(map[string]issuer.Source{issuer.Segment: source}, &issuer.Options{MaxBatch: 50}), source
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
			if want := map[bool]int{true: 1, false: 0}[err == nil]; source.calls != want || id != int64(want) {
				t.Errorf("ID %d after %d calls of the source, want %d", id, source.calls, want)
			}
			if err := ids.Check(tt.scheme, tt.key); !errors.Is(err, tt.want) {
				t.Errorf("Check: %v, want %v", err, tt.want)
			}
		})
	}
}

func TestTake(t *testing.T) {
	dst := []leaf.Range{{Start: 1, End: 2}}
	for _, n := range []int{-1, 0, 51, 1 << 40} {
		ids, source := newIssuer()
		got, err := ids.Take(t.Context(), "", "order", dst, n)
		if !errors.Is(err, leaf.ErrInvalid) || source.calls != 0 {
			t.Errorf("Take(%d): %v after %d calls, want ErrInvalid and none", n, err, source.calls)
		}
		if err != nil && !strings.Contains(err.Error(), "1 to 50") {
			t.Errorf("Take(%d): %q does not tell the limit", n, err)
		}
		if diff := cmp.Diff(dst, got); diff != "" {
			t.Errorf("Take(%d) changed dst: %s", n, diff)
		}
	}
	for _, n := range []int{1, 50} {
		ids, _ := newIssuer()
		got, err := ids.Take(t.Context(), "", "order", dst, n)
		want := []leaf.Range{{Start: 1, End: 2}, {Start: 100, End: 100 + int64(n)}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Take(%d): %v %s", n, err, diff)
		}
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

func TestTexts(t *testing.T) {
	ids, _ := newIssuer()
	got, err := ids.Texts("uuid", "v4", 50)
	if err != nil || len(got) != 50 || got[0][14] != '4' {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []struct {
		scheme, key string
		n           int
	}{{"uuid", "v4", 0}, {"uuid", "v4", 51}, {"uuid", "a\x00", 1}, {"uuid", "v1", 1}, {"segment", "order", 1}, {"", "order", 1}} {
		if got, err := ids.Texts(bad.scheme, bad.key, bad.n); !errors.Is(err, leaf.ErrInvalid) || len(got) > 0 {
			t.Errorf("%v: %q, %v", bad, got, err)
		}
	}
	if _, err := ids.Next(t.Context(), "uuid", ""); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("Next: %v", err)
	}
	if err := ids.Check("uuid", ""); err != nil {
		t.Error(err)
	}
}
