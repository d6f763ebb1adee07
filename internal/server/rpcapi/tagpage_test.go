package rpcapi

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
)

func pageOf(t *testing.T, req *leafv1.ListTagsRequest, tags []segment.Tag) (names []string, res *leafv1.ListTagsResponse) {
	t.Helper()
	p, err := newTagPage(req, int(req.GetPageSize()))
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range tags {
		p.add(tag)
	}
	res = p.answer()
	for _, tag := range res.GetTags() {
		names = append(names, tag.GetName())
	}
	return names, res
}

func TestTagPage(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	tags := []segment.Tag{
		{Name: "d", Step: 1, MaxID: 40, Updated: now}, {Name: "b", Step: 3, MaxID: 20, Options: segment.Describe("Refunds")},
		{Name: "a", Step: 3, MaxID: 10, Updated: now.Add(1)}, {Name: "c-Order", Step: 2, MaxID: 30},
	}
	tests := []struct {
		req   *leafv1.ListTagsRequest
		want  []string
		total int32
		next  string
	}{
		{&leafv1.ListTagsRequest{PageSize: 2}, []string{"a", "b"}, 0, "b"},
		{&leafv1.ListTagsRequest{PageSize: 2, PageToken: "b"}, []string{"c-Order", "d"}, 0, ""},
		{&leafv1.ListTagsRequest{PageSize: 9, OrderBy: "-name"}, []string{"d", "c-Order", "b", "a"}, 4, ""},
		{&leafv1.ListTagsRequest{PageSize: 9, OrderBy: "step"}, []string{"d", "c-Order", "a", "b"}, 4, ""},
		{&leafv1.ListTagsRequest{PageSize: 2, OrderBy: "-step"}, []string{"a", "b"}, 4, ""},
		{&leafv1.ListTagsRequest{PageSize: 2, OrderBy: "-max_id", Skip: 1}, []string{"c-Order", "b"}, 4, ""},
		{&leafv1.ListTagsRequest{PageSize: 2, OrderBy: "-updated"}, []string{"a", "d"}, 4, ""},
		{&leafv1.ListTagsRequest{PageSize: 2, Contains: "order"}, []string{"c-Order"}, 1, ""},
		{&leafv1.ListTagsRequest{PageSize: 2, Contains: "refund"}, []string{"b"}, 1, ""},
		{&leafv1.ListTagsRequest{PageSize: 2, Skip: 7}, nil, 4, ""},
	}
	for _, tt := range tests {
		names, res := pageOf(t, tt.req, tags)
		if !slices.Equal(names, tt.want) || res.GetTotal() != tt.total || res.GetNextPageToken() != tt.next {
			t.Errorf("%v: %v of %d, next %q; want %v of %d, next %q", tt.req, names, res.GetTotal(), res.GetNextPageToken(), tt.want, tt.total, tt.next)
		}
	}
	for _, req := range []*leafv1.ListTagsRequest{{OrderBy: "size"}, {OrderBy: "-"}, {OrderBy: "--step"}, {Skip: -1}, {PageToken: "a", Skip: 1}, {PageToken: "a", OrderBy: "step"}} {
		if _, err := newTagPage(req, 10); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%v: %v", req, err)
		}
	}
}

// A page of many tags holds no more of them than it needs, and the right ones.
func TestTagPageKeepsFew(t *testing.T) {
	p, err := newTagPage(&leafv1.ListTagsRequest{OrderBy: "-max_id", Skip: 20}, 10)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(10_000) {
		p.add(segment.Tag{Name: fmt.Sprint("t", i), MaxID: i * 7919 % 10_007})
		if len(p.tags) > 62 {
			t.Fatalf("%d tags are kept", len(p.tags))
		}
	}
	res := p.answer()
	if res.GetTotal() != 10_000 || len(res.GetTags()) != 10 {
		t.Fatalf("%d of %d", len(res.GetTags()), res.GetTotal())
	}
	for i := 1; i < len(res.GetTags()); i++ {
		if res.GetTags()[i-1].GetMaxId() <= res.GetTags()[i].GetMaxId() {
			t.Error("not in order")
		}
	}
}
