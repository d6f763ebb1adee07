package issuer_test

import (
	"errors"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// A tag with a mask gets the fingerprint of the key, is raised, and has no next number to peek at.
func TestMaskedTag(t *testing.T) {
	tags := issuer.NewTags(memory.New().Store(), nil, nil)
	tags.UseMaskKeys(drivertest.MaskKeys)
	tag := segment.Tag{Name: "order", MaxID: 5, Step: 10, Options: segment.TagOptions{segment.OptionMask: "k1:10^9"}}
	made, err := tags.Create(t.Context(), tag)
	if want := "k1:10^9:" + drivertest.MaskKeys["k1"].Fingerprint(); err != nil || made.Options[segment.OptionMask] != want {
		t.Fatalf("got %+v, %v", made, err)
	}
	if p, err := tags.Peek(t.Context(), "order"); err != nil || p.Next != 0 || p.Tag.MaxID != 5 {
		t.Errorf("peek: %+v, %v", p, err)
	}
	if now, err := tags.Alter(t.Context(), "order", issuer.Change{RaiseBy: new(int64(10))}); err != nil || now.MaxID != 15 {
		t.Errorf("raise: %+v, %v", now, err)
	}
	if o, err := tags.Observe(t.Context(), "order", 99); err != nil || o.Tag.MaxID < 100 {
		t.Errorf("observe: %+v, %v", o, err)
	}
	if err := tags.Delete(t.Context(), "order"); err != nil {
		t.Error(err)
	}
	if _, err := tags.Create(t.Context(), tag); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("a second mask for the name: %v", err)
	}
	tag.Name, tag.Options = "other", segment.TagOptions{segment.OptionMask: "k2:10^9"}
	if _, err := tags.Create(t.Context(), tag); !errors.Is(err, segment.ErrMaskKey) {
		t.Errorf("with an unknown key: %v", err)
	}
}
