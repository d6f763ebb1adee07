package rpcapi_test

import (
	"fmt"
	"slices"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

func TestAdmin(t *testing.T) {
	f := serve(t, loopback)
	ctx := t.Context()
	ignore := protocmp.IgnoreFields(&leafv1.Tag{}, "updated")
	created, err := f.admin.CreateTag(ctx, &leafv1.CreateTagRequest{Name: "a", Step: 5})
	if diff := cmp.Diff(&leafv1.Tag{Name: "a", MaxId: 1, Step: 5}, created.GetTag(), protocmp.Transform(), ignore); err != nil || diff != "" {
		t.Fatalf("CreateTag: %v %s", err, diff)
	}
	created, err = f.admin.CreateTag(ctx, &leafv1.CreateTagRequest{Name: "b", Step: 5, MaxId: new(int64(0)), Description: "x"})
	if err != nil || created.GetTag().GetMaxId() != 0 {
		t.Errorf("CreateTag from 0: %v %v", created, err)
	}
	_, err = f.admin.CreateTag(ctx, &leafv1.CreateTagRequest{Name: "a", Step: 5})
	wantCode(t, "create again", err, connect.CodeAlreadyExists)
	_, err = f.admin.CreateTag(ctx, &leafv1.CreateTagRequest{Name: "c"})
	wantCode(t, "create with step 0", err, connect.CodeInvalidArgument)
	altered, err := f.admin.AlterTag(ctx, &leafv1.AlterTagRequest{Name: "b", Step: new(int64(6)), Description: new(""), RaiseBy: new(int64(50))})
	if diff := cmp.Diff(&leafv1.Tag{Name: "b", MaxId: 50, Step: 6}, altered.GetTag(), protocmp.Transform(), ignore); err != nil || diff != "" {
		t.Errorf("AlterTag: %v %s", err, diff)
	}
	_, err = f.admin.AlterTag(ctx, &leafv1.AlterTagRequest{Name: "b", MaxId: new(int64(7))})
	wantCode(t, "lower", err, connect.CodeFailedPrecondition)
	_, err = f.admin.AlterTag(ctx, &leafv1.AlterTagRequest{Name: "nope", Step: new(int64(7))})
	wantCode(t, "alter unknown", err, connect.CodeNotFound)
	if _, err := f.admin.DeleteTag(ctx, &leafv1.DeleteTagRequest{Name: "a"}); err != nil {
		t.Error(err)
	}
	_, err = f.admin.DeleteTag(ctx, &leafv1.DeleteTagRequest{Name: "a"})
	wantCode(t, "delete again", err, connect.CodeNotFound)
	list, err := f.admin.ListTags(ctx, new(leafv1.ListTagsRequest))
	want := []*leafv1.Tag{{Name: "b", MaxId: 50, Step: 6}, {Name: "order", MaxId: 100, Step: 10, Description: "d"}}
	if diff := cmp.Diff(want, list.GetTags(), protocmp.Transform(), ignore); err != nil || diff != "" {
		t.Errorf("ListTags: %v %s", err, diff)
	}
}

// After an administrator lowered or deleted a tag the server issues by the new counter
// at once.
func TestForgets(t *testing.T) {
	f := serve(t, loopback)
	next := func(want int64) {
		t.Helper()
		got, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"})
		if err != nil || got.GetId() != want {
			t.Errorf("Next: %v, %v, want %d", got, err, want)
		}
	}
	next(100)
	if _, err := f.admin.AlterTag(t.Context(), &leafv1.AlterTagRequest{Name: "order", MaxId: new(int64(7)), Force: true}); err != nil {
		t.Fatal(err)
	}
	next(7)
	if _, err := f.admin.DeleteTag(t.Context(), &leafv1.DeleteTagRequest{Name: "order"}); err != nil {
		t.Fatal(err)
	}
	_, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"})
	wantCode(t, "deleted", err, connect.CodeNotFound)
}

func TestStatus(t *testing.T) {
	f := serve(t, everyone)
	if _, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Key: "order", Count: 1}); err != nil {
		t.Fatal(err)
	}
	got, err := f.admin.Status(t.Context(), new(leafv1.StatusRequest))
	if err != nil {
		t.Fatal(err)
	}
	want := &leafv1.StatusResponse{
		Version: "v1.2.3", Started: timestamppb.New(started), Listen: "0.0.0.0:8080", Ready: true,
		Schemes: []*leafv1.SchemeStatus{{Name: "segment", Ready: true}, {Name: "uuid", Ready: true}},
		Store:   &leafv1.StoreStatus{Name: "memory", Reachable: true},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform(), protocmp.IgnoreFields(want, "tags"), protocmp.IgnoreFields(want.Store, "identity")); diff != "" {
		t.Error(diff)
	}
	if len(got.GetStore().GetIdentity()) != 26 {
		t.Errorf("identity %q", got.GetStore().GetIdentity())
	}
	if len(got.GetTags()) != 1 {
		t.Fatalf("tags: %v", got.GetTags())
	}
	tag := got.GetTags()[0]
	if first := tag.GetSegments()[0]; tag.GetTag() != "order" || !tag.GetLoaded() || tag.GetIssued() != 1 || tag.GetStep() != 10 ||
		first.GetRange().GetStart() != 100 || first.GetNext() != 101 || tag.FailingSince != nil {
		t.Errorf("tag: %v", tag)
	}
}

// Pages of any size have all tags once, in the order of their names.
func TestListTagsInPages(t *testing.T) {
	f := serve(t, loopback)
	want := []string{"order"}
	for i := range 24 {
		name := fmt.Sprintf("t%02d", (i*7)%24)
		if _, err := f.admin.CreateTag(t.Context(), &leafv1.CreateTagRequest{Name: name, Step: 5}); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	slices.Sort(want)
	for _, size := range []int32{0, 1, 4, 5, 24, 25, 26, 10_000} {
		var got []string
		req := &leafv1.ListTagsRequest{PageSize: size}
		for {
			res, err := f.admin.ListTags(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(res.GetTags()); size > 0 && n > int(size) {
				t.Errorf("a page of %d has %d tags", size, n)
			}
			for _, tag := range res.GetTags() {
				got = append(got, tag.GetName())
			}
			if req = (&leafv1.ListTagsRequest{PageSize: size, PageToken: res.GetNextPageToken()}); req.PageToken == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pages of %d (-want +got):\n%s", size, diff)
		}
	}
	for _, size := range []int32{-1, 10_001} {
		_, err := f.admin.ListTags(t.Context(), &leafv1.ListTagsRequest{PageSize: size})
		wantCode(t, "a page of a wrong size", err, connect.CodeInvalidArgument)
	}
}
