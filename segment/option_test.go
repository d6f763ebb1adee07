package segment_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

func TestTagOptions(t *testing.T) {
	type options = segment.TagOptions
	before := options{"description": "d", "order": "strict"}
	for _, tt := range []struct{ change, want options }{
		{nil, before},
		{options{"description": ""}, options{"order": "strict"}},
		{options{"order": "", "form": "x"}, options{"description": "d", "form": "x"}},
		{options{"order": "", "description": ""}, nil},
	} {
		if got := before.With(tt.change); !maps.Equal(got, tt.want) || (got == nil) != (tt.want == nil) {
			t.Errorf("with %v: %v, want %v", tt.change, got, tt.want)
		}
	}
	if len(before) != 2 || before.Others()["order"] != "strict" || len(before.Others()) != 1 || before.Description() != "d" {
		t.Errorf("the options have changed: %v", before)
	}
}

func TestTagOptionsCheck(t *testing.T) {
	long := strings.Repeat("界", segment.MaxOptionValue)
	for name, tt := range map[string]struct {
		options segment.TagOptions
		valid   bool
	}{
		"none":          {nil, true},
		"newer release": {segment.TagOptions{"some_thing": long}, true},
		"too long":      {segment.TagOptions{"description": long + "x"}, false},
		"not UTF-8":     {segment.TagOptions{"order": "\xff"}, false},
		"no name":       {segment.TagOptions{"": "x"}, false},
		"capital":       {segment.TagOptions{"Order": "x"}, false},
		"long name":     {segment.TagOptions{strings.Repeat("a", 33): "x"}, false},
	} {
		create := segment.Tag{Name: "a", Step: 1, Options: tt.options}.Check()
		change := segment.Change{Options: tt.options}.Check()
		for _, err := range []error{create, change} {
			if (err == nil) != tt.valid || err != nil && !errors.Is(err, leaf.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if err := segment.Describe("x").CheckKnown(); err != nil {
		t.Error(err)
	}
	if err := (segment.TagOptions{"newer": "x"}).CheckKnown(); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("an unknown option: %v", err)
	}
}

func TestOptionRow(t *testing.T) {
	segment.AddOption(t, segment.Option{Name: "order", Fixed: true, Check: func(value string) error {
		if value != "strict" {
			return fmt.Errorf("%w: %q", leaf.ErrInvalid, value)
		}
		return nil
	}})
	for value, valid := range map[string]bool{"strict": true, "loose": false, "": true} {
		o := segment.TagOptions{"order": value}
		err := segment.Tag{Name: "a", Step: 1, Options: o}.Check()
		if (err == nil) != valid || err != nil && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("create with %q: %v", value, err)
		}
		if err := (segment.Change{Options: o}).Check(); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("change to %q: %v", value, err)
		}
		if err := o.CheckKnown(); err != nil {
			t.Error(err)
		}
	}
}
