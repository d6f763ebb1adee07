package leafconn

import (
	"errors"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/segment"
)

// A tag that one server does not know may be another one's, unless that server has the known store or
// all say so. Only a server that knows the tag is asked first from then on.
func TestTagOfAnotherServer(t *testing.T) {
	unknown := says(nil, refuses(connect.CodeNotFound, "UNKNOWN_TAG"))
	away := says(nil, refuses(connect.CodeUnavailable, "STORE_UNAVAILABLE"))
	grant := func(store string) func(string, []byte) (proto.Message, error) {
		return says(&leafv1.AdvanceResponse{Store: store, Strict: true, Range: &leafv1.Range{Start: 1, End: 2}}, nil)
	}
	a, b := startFake(t, nil), startFake(t, nil)
	for name, tt := range map[string]struct {
		expect string
		proven bool // a has granted IDs of the known store
		first  func(string, []byte) (proto.Message, error)
		second func(string, []byte) (proto.Message, error)
		want   error
		active int64
	}{
		"the other has it":           {"mine", false, unknown, grant("mine"), nil, 1},
		"nobody has it":              {"mine", false, unknown, unknown, leaf.ErrUnknownTag, 0},
		"the other is away":          {"mine", false, unknown, away, errAway, 0},
		"away, but the first knows":  {"mine", true, unknown, away, leaf.ErrUnknownTag, 0},
		"away first":                 {"mine", false, away, unknown, errAway, 0},
		"the other has another":      {"mine", false, unknown, grant("other"), leaf.ErrUnknownTag, 0},
		"the first has another":      {"mine", false, grant("other"), unknown, leaf.ErrUnknownTag, 0},
		"no tag, and no known store": {"", false, unknown, grant("mine"), nil, 1},
	} {
		c := openTo(t, Options{}, a, b)
		if tt.expect != "" {
			c.Expect(tt.expect)
		}
		if a.set(grant("mine")); tt.proven {
			if _, err := (Store{c}).Advance(t.Context(), "order", 1); err != nil {
				t.Fatal(err)
			}
		}
		a.set(tt.first)
		b.set(tt.second)
		_, err := Store{c}.AdvanceStrict(t.Context(), "order", "", 1)
		if !errors.Is(err, tt.want) || errors.Is(err, leaf.ErrUnknownTag) != (tt.want == leaf.ErrUnknownTag) || c.active.Load() != tt.active {
			t.Errorf("%s: %v, server %d first, want %v, %d", name, err, c.active.Load(), tt.want, tt.active)
		}
	}
}

// A listing of another store counts no more than its IDs do.
func TestListingOfAnotherStore(t *testing.T) {
	mine := startFake(t, says(&leafv1.ListTagsResponse{Tags: []*leafv1.Tag{{Name: "order"}}}, nil))
	other := startFake(t, says(&leafv1.ListTagsResponse{Tags: []*leafv1.Tag{{Name: "foreign"}}}, nil))
	mine.header.Set(hops.Store, "mine")
	other.header.Set(hops.Store, "other")
	list := func(servers ...*fake) (names []string, err error) {
		c := openTo(t, Options{}, servers...)
		c.Expect("mine")
		for tag, err := range (Store{c}).Tags(t.Context()) {
			if err != nil {
				return names, err
			}
			names = append(names, tag.Name)
		}
		return names, nil
	}
	if names, err := list(other, mine); err != nil || strings.Join(names, " ") != "order" {
		t.Errorf("got %q, %v", names, err)
	}
	if names, err := list(other); !errors.Is(err, segment.ErrForeignStore) || len(names) > 0 {
		t.Errorf("got %q, %v of another store alone", names, err)
	}
}
