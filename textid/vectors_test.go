package textid_test

import (
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/textid"
)

// A vector is an entry of api/vectors/forms.json.
type vector struct {
	N      int64  `json:"n,string"`
	Period string `json:"period"`
	Key    int    `json:"key"`
	Text   string `json:"text"`
}

func (v vector) number(t *testing.T) textid.Number {
	t.Helper()
	n := textid.Number{N: v.N, Key: v.Key}
	if v.Period != "" {
		var err error
		if n.Period, err = time.Parse(time.DateOnly, v.Period); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// TestVectors compares texts with those of another implementation.
func TestVectors(t *testing.T) {
	var file struct {
		Forms []struct {
			Template string
			Texts    []vector
			Refused  []vector
			Wrong    []string
		}
		Malformed []string
	}
	data, err := os.ReadFile("../api/vectors/forms.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, form := range file.Forms {
		f, err := textid.New(form.Template)
		if err != nil || f.String() != form.Template {
			t.Errorf("New(%q) = %v, %v", form.Template, f, err)
			continue
		}
		for _, v := range form.Texts {
			want := v.number(t)
			if text, err := f.Encode(want); err != nil || text != v.Text {
				t.Errorf("%s: Encode(%+v) = %q, %v, want %q", form.Template, want, text, err, v.Text)
			}
			if got, err := f.Decode(v.Text); err != nil || got != want {
				t.Errorf("%s: Decode(%q) = %+v, %v, want %+v", form.Template, v.Text, got, err, want)
			}
		}
		for _, v := range form.Refused {
			if text, err := f.Encode(v.number(t)); !errors.Is(err, leaf.ErrOverflow) || text != "" {
				t.Errorf("%s: Encode(%+v) = %q, %v, want ErrOverflow", form.Template, v, text, err)
			}
		}
		for _, text := range form.Wrong {
			if got, err := f.Decode(text); !errors.Is(err, leaf.ErrInvalid) {
				t.Errorf("%s: Decode(%q) = %+v, %v, want ErrInvalid", form.Template, text, got, err)
			}
		}
	}
	for _, template := range file.Malformed {
		if f, err := textid.New(template); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("New(%q) = %v, %v, want ErrInvalid", template, f, err)
		}
	}
	if len(file.Forms) < 10 || len(file.Malformed) < 10 {
		t.Errorf("%d forms, %d malformed templates: the file is cut", len(file.Forms), len(file.Malformed))
	}
}
