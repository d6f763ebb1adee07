package segment_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

func TestFormOption(t *testing.T) {
	type o = segment.TagOptions
	for name, tt := range map[string]struct {
		options o
		valid   bool
	}{
		"good":              {o{"form": "INV-{n:6}{check:luhn}"}, true},
		"no number":         {o{"form": "INV-"}, false},
		"key":               {o{"form": "{key}{n}"}, false},
		"quote":             {o{"form": `"{n}`}, false},
		"backslash":         {o{"form": `\{n}`}, false},
		"long":              {o{"form": "a234567890b234567890c234567890d234567890e23456-{n}"}, false}, // 47 and 19
		"longest":           {o{"form": "a234567890b234567890c234567890d234567890e234-{n}"}, true},    // 45 and 19
		"period":            {o{"form": "{period:yyyyMMdd}{n}", "period": "day"}, true},
		"week":              {o{"form": "{period:yyyyMMdd}{n}", "period": "week", "zone": "Asia/Tokyo"}, true},
		"month":             {o{"form": "{n}/{period:yyyyMM}", "period": "month"}, true},
		"year":              {o{"form": "{n}/{period:yyyy}", "period": "year"}, true},
		"no period":         {o{"form": "{period:yyyyMMdd}{n}"}, false},
		"month of days":     {o{"form": "{period:yyyyMM}{n}", "period": "day"}, false},
		"month of weeks":    {o{"form": "{period:yyyyMM}{n}", "period": "week"}, false},
		"year of months":    {o{"form": "{period:yyyy}{n}", "period": "month"}, false},
		"year from 6 April": {o{"form": "{period:yyyy}{n}", "period": "fiscal:04-06"}, false},
	} {
		err := segment.Tag{Name: "a", Step: 1, Options: tt.options}.Check()
		if (err == nil) != tt.valid || err != nil && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A form gives way only to longer texts, so two numbers never share a text.
func TestFormChange(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		valid         bool
	}{
		{"", "{n}", true},
		{"INV-{n:6}", "INV-{n:6}", true},
		{"INV-{n:6}", "INV-{n:7}", true},
		{"INV-{n:6}", "INVOICE-{n:8}", true},
		{"INV-{n:6}", "INVOICE-NR-{n}", true}, // twelve bytes at least
		{"INV-{n:6}", "", false},
		{"INV-{n:6}", "INV-{n:5}", false},
		{"INV-{n:6}", "INW-{n:6}", false},
		{"{n}", "1{n}", false}, // 15 would be the text of 15 and of 5
		{"{n}", "{n:19}", false},
		{"{n}", "{n:20}", true},
		{"{n:base36}", "{n:14}", true},
		{"{n:6}", "{n:4}{period:yyyyMMdd}", false}, // the tag has no period
	} {
		before := segment.TagOptions{segment.OptionForm: tt.before}.With(nil)
		tag, err := segment.Change{Options: segment.TagOptions{segment.OptionForm: tt.after}}.Apply(segment.Tag{Options: before})
		if (err == nil) != tt.valid || err != nil && !errors.Is(err, leaf.ErrInvalid) || err == nil && tag.Options[segment.OptionForm] != tt.after {
			t.Errorf("%q after %q: got %v, %v", tt.after, tt.before, tag.Options, err)
		}
	}
	if _, err := (segment.Change{Step: new(int64(3))}).Apply(segment.Tag{Options: segment.TagOptions{segment.OptionForm: "of a newer release"}}); err != nil {
		t.Errorf("another change: %v", err)
	}
}

// A set learns of forms when it lists the store, which it does for a caller too.
func TestSetForm(t *testing.T) {
	store := newStore(t, 1, 10)
	if err := store.Create(t.Context(), segment.Tag{Name: "early", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionForm: "E{n}"}}); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, &segment.SetOptions{CheckInterval: time.Hour, Options: segment.Options{Wait: 2 * time.Second}})
	defer set.Close(t.Context())
	<-set.Ready()
	is := func(tag, want string) {
		t.Helper()
		if form, err := set.Form(t.Context(), tag); err != nil || form.String() != want {
			t.Errorf("%s: got %v, %v, want %s", tag, form, err, want)
		}
	}
	is("early", "E{n}")
	late := segment.Tag{Name: "late", MaxID: 1, Step: 10}
	if err := store.Create(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	_, err := set.Form(t.Context(), "late")
	wantError(t, err, leaf.ErrInvalid)
	_, err = set.Form(t.Context(), "nope")
	wantError(t, err, leaf.ErrUnknownTag)
	if _, err = store.Alter(t.Context(), "late", segment.Change{Options: segment.TagOptions{segment.OptionForm: "L{n:4}"}}); err != nil {
		t.Fatal(err)
	}
	is("late", "L{n:4}")
	late, err = store.Alter(t.Context(), "late", segment.Change{Options: segment.TagOptions{segment.OptionForm: "L{n:5}"}})
	if err != nil {
		t.Fatal(err)
	}
	set.Server().Changed(late)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if form, err := set.Form(t.Context(), "late"); err != nil || form.String() == "L{n:5}" || time.Now().After(deadline) {
			break
		}
	}
	is("late", "L{n:5}")
}
