package leafconn_test

import (
	"errors"
	"testing"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/segment"
)

// A server of an older release drops the options that it does not know.
func TestOptionsOfMessages(t *testing.T) {
	tag := segment.Tag{Name: "order", MaxID: 1, Step: 5, Options: segment.TagOptions{"description": "d", "order": "strict"}}
	req := leafconn.CreateRequest(tag)
	answer := &leafv1.Tag{Name: "order", MaxId: 1, Step: 5, Description: req.GetDescription(), Options: req.GetOptions()}
	if got := leafconn.Tag(answer); !got.Same(tag) {
		t.Errorf("got %+v", got)
	}
	if err := leafconn.CheckOptions(tag.Options, answer); err != nil {
		t.Error(err)
	}
	answer.Options = nil
	if err := leafconn.CheckOptions(tag.Options, answer); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("an ignored option: %v", err)
	}
	if err := leafconn.CheckOptions(segment.Describe("d"), answer); err != nil {
		t.Error(err)
	}
	change := leafconn.AlterRequest("order", segment.Change{Options: segment.TagOptions{"description": "", "order": ""}})
	if change.Description == nil || change.GetDescription() != "" || len(change.GetOptions()) != 1 {
		t.Errorf("removes both: %v", change)
	}
}
